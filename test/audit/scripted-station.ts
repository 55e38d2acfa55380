/** A station without an actor host: the test runs the real machine and appends its commits to the real log. */
import type { Actor } from "../../machines/actor.ts";
import type { PaymentIntent } from "../../machines/payment-intent.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import type { StationCommand } from "../../machines/station/command.ts";
import { type Commit, encodeCommit, MACHINE_VERSION } from "../../machines/station/commit.ts";
import type { RecordedConfirmation } from "../../machines/station/outcome.ts";
import { renderReply } from "../../machines/station/render-reply.ts";
import type { StationReply } from "../../machines/station/reply.ts";
import type { DeviceDescription, OrderSnapshot, StationState } from "../../machines/station/state.ts";
import { step } from "../../machines/station/step.ts";
import type { Bus } from "../../services/bus/connection.ts";
import type { StationResponse } from "../../services/bus/messages/station-commands.ts";
import type { StationLogs } from "../../services/bus/streams.ts";
import { ONE_LOG } from "../support/one-log.ts";

export interface StationFacts {
  readonly organizationId: number;
  readonly filialId: number;
  readonly stationId: number;
  readonly companionId: number;
  readonly cashier: { readonly id: number; readonly name: string };
}

/** The station's place in the log at one moment. */
export interface LogSnapshot {
  readonly state: StationState | null;
  readonly version: number;
  readonly sequence: number;
  /** The number of the station's commits. */
  readonly commits: number;
}

export class ScriptedStation {
  readonly facts: StationFacts;
  /** Every appended commit with its sequence in the stream. */
  readonly commits: { commit: Commit; sequence: number }[] = [];
  /** The answer to each committed command, by command id. */
  readonly responses = new Map<string, StationResponse>();
  state: StationState | null = null;
  /** What the providers service has recorded about an overdue QR. */
  recordedConfirmation: RecordedConfirmation = "none";
  /** The station's clock. One second passes with each command. */
  nowMs = Date.UTC(2026, 10, 20, 12, 0, 0);
  readonly #bus: Bus;
  readonly #logs: StationLogs;
  #version = 0;
  #sequence = 0;

  constructor(bus: Bus, facts: StationFacts, logs: StationLogs = ONE_LOG) {
    this.#bus = bus;
    this.#logs = logs;
    this.facts = facts;
  }

  get cashier(): Actor {
    return { kind: "cashier", ...this.facts.cashier };
  }
  get companion(): Actor {
    return { kind: "device", id: this.facts.companionId };
  }

  /** Makes one step of the machine, and appends it when it has events. */
  async do(
    command: StationCommand,
    actor: Actor,
    commandId = `${command.type}:${this.#version}`,
    recalled?: PaymentIntent,
  ): Promise<StationReply> {
    this.nowMs += 1_000;
    const input = {
      command,
      commandId,
      actor,
      atMs: this.nowMs,
      switches: NO_KILL_SWITCHES,
      settings: DEFAULT_MACHINE_SETTINGS,
      recordedConfirmation: this.recordedConfirmation,
      recalled,
    };
    const next = step(this.state, input);
    if (next.state === null || next.events.length === 0) return next.reply;
    const { state, events, reply } = next;
    this.#version += 1;
    const version = this.#version;
    const atMs = this.nowMs;
    const commit: Commit = { machineVersion: MACHINE_VERSION, version, atMs, commandId, actor, events, reply, state };
    const acked = await this.#bus.js.publish(this.#logs.subject(this.facts.stationId), encodeCommit(commit), {
      expect: { lastSubjectSequence: this.#sequence },
    });
    this.#sequence = acked.seq;
    this.state = state;
    this.commits.push({ commit, sequence: acked.seq });
    const rendered = renderReply(state, reply);
    if (rendered !== undefined) this.responses.set(commandId, { ...rendered, sequence: acked.seq });
    return reply;
  }

  /** The station's current place in the log. */
  snapshot(): LogSnapshot {
    return { state: this.state, version: this.#version, sequence: this.#sequence, commits: this.commits.length };
  }

  /** Continues from the snapshot, as after a loss of everything after it: the next command applies to that state. */
  restore({ state, version, sequence }: LogSnapshot): void {
    this.state = state;
    this.#version = version;
    this.#sequence = sequence;
  }

  /** Creates the station with a live companion and the cashier's lease. */
  async open(device: Partial<DeviceDescription> = {}): Promise<this> {
    const { organizationId, filialId, stationId, companionId } = this.facts;
    const registry: Actor = { kind: "registry", id: 0 };
    const station = {
      organizationId,
      filialId,
      name: "Counter 1",
      currency: "EUR",
      status: "active" as const,
      revision: 1,
    };
    await this.do({ type: "station_put", stationId, station }, registry);
    const companion: DeviceDescription = {
      deviceId: companionId,
      name: "Counter terminal",
      kind: "smart_pos_companion",
      capabilities: ["handoff_present", "outcome_report"],
      status: "active",
      handoffTarget: "app://pay",
      revision: 1,
      ...device,
    };
    await this.do({ type: "device_put", device: companion }, registry);
    await this.companionHeartbeat();
    await this.do({ type: "lease_acquire", lifetimeMs: 24 * 3_600_000 }, this.cashier);
    return this;
  }

  async companionHeartbeat(): Promise<void> {
    await this.do(
      { type: "device_seen", deviceId: this.facts.companionId, seenAtMs: this.nowMs },
      { kind: "system", id: 0 },
    );
  }

  async companionSilence(): Promise<void> {
    const command = { type: "device_silent", deviceId: this.facts.companionId, lastSeenAtMs: this.nowMs } as const;
    await this.do(command, { kind: "system", id: 0 });
  }

  async collect(
    intentId: number,
    order: OrderSnapshot,
    route: "smart_pos" | "dynamic_qr" | "cash" = "smart_pos",
  ): Promise<StationReply> {
    return await this.do({ type: "intent_create", route, intentId, order }, this.cashier, `create:${intentId}`);
  }

  async report(intentId: number, changes: Partial<Extract<StationCommand, { type: "intent_report" }>> = {}, key = "1") {
    const command = {
      type: "intent_report" as const,
      intentId,
      outcome: "reported_success" as const,
      providerReference: "RRN-77",
      providerCode: "00",
      ...changes,
    };
    return await this.do(command, this.companion, `report:${intentId}:${key}`);
  }

  /** One cash collection from creation to settlement: three commits. */
  async collectCash(intentId: number): Promise<void> {
    await this.collect(intentId, orderSnapshot(intentId), "cash");
    await this.do({ type: "intent_attest", intentId }, this.cashier, `attest:${intentId}`);
    await this.settled(intentId, intentId);
  }

  async settled(intentId: number, transactionId: number): Promise<void> {
    await this.do({ type: "settlement_succeeded", intentId, transactionId }, { kind: "settlement", id: 0 });
  }
}

export function orderSnapshot(orderId: number, changes: Partial<OrderSnapshot> = {}): OrderSnapshot {
  return {
    orderId,
    orderDisplayNumber: 7,
    amountMinor: "1250",
    currency: "EUR",
    status: "open",
    revision: 1,
    ...changes,
  };
}
