/**
 * One command on one station: load → gather → `step()` → append → answer.
 *
 * The append is conditional on the station's newest commit, so that commits follow one another even when two hosts believe
 * that they own the station (I5). The runner answers nothing before it is in the log (I4). Some answers
 * need no commit but hold for the newest state only: the log first confirms that this state is the newest (M59). After an
 * append with an unknown outcome the runner reads the log back; where that fails too, `unknown-appends.ts` finds it out.
 */

import type { NatsConnection } from "nats";
import type { MachineSettings } from "../../machines/settings.ts";
import { BLOCKED_REASONS } from "../../machines/standing.ts";
import { type Commit, MACHINE_VERSION } from "../../machines/station/commit.ts";
import { needsNewestState, needsNewestSwitches } from "../../machines/station/finality.ts";
import { type RenderedReply, renderReply } from "../../machines/station/render-reply.ts";
import { keptReply } from "../../machines/station/repetition.ts";
import { type StationReply } from "../../machines/station/reply.ts";
import type { StationState } from "../../machines/station/state.ts";
import { step } from "../../machines/station/step.ts";
import type { BusClock } from "../bus/bus-clock.ts";
import { diskOf } from "../bus/disk-gate.ts";
import { Failures } from "../bus/outage.ts";
import { RefusedError } from "../bus/refusals.ts";
import type { SwitchesReplica } from "../bus/switches-replica.ts";
import { isShort } from "../runtime/disk-watch.ts";
import type { Log } from "../runtime/log.ts";
import type { ConfirmationChecks } from "./confirmation-checks.ts";
import { type Gathered, gather, recallIntent } from "./gather.ts";
import { STATION_LIMITS } from "./limits.ts";
import { type HostMetrics, resultOf, typeOf } from "./metrics.ts";
import type { KnownStation, StateCache } from "./state-cache.ts";
import type { StationLog, StoredCommit } from "./station-log.ts";
import type { UnknownAppend } from "./unknown-appends.ts";
import { BUSY, type HostCommand, NO_SPACE, type StationAnswer, UNAVAILABLE, type Work } from "./work.ts";

export interface CommandRunnerDeps {
  readonly nc: NatsConnection;
  /** The time of each commit, and of every deadline in it. */
  readonly clock: Pick<BusClock, "nowMs">;
  readonly log: Log;
  readonly stationLog: StationLog;
  readonly cache: StateCache;
  readonly switches: SwitchesReplica;
  readonly settings: MachineSettings;
  readonly metrics: HostMetrics;
  /** Whether this host may append for the station now. */
  readonly isServed: (stationId: number) => boolean;
  /** Whether the host holds the station's partition, also while the lease is not renewed. */
  readonly isHeld: (stationId: number) => boolean;
  /** Called with each state that was read or committed, before the runner answers from it. */
  readonly onKnown: (stationId: number, known: KnownStation) => void;
  /** Called when the outcome of an append is unknown. The station takes no other command until `admit`. */
  readonly onUnknownAppend: (stationId: number, append: UnknownAppend) => void;
  readonly confirmations: Pick<ConfirmationChecks, "find">;
}

/** Returned instead of an answer: the work is answered when the station's settlement ends. */
const SETTLING = Symbol("settling");
type RunResult = StationAnswer | typeof SETTLING;

/** `overtaken`: another commit is the newest, and an earlier attempt of this one may be below it. */
type CommitResult =
  | { readonly known: KnownStation; readonly reply: StationReply }
  | "conflict"
  | "overtaken"
  | "failed";

export class CommandRunner {
  readonly #deps: CommandRunnerDeps;
  readonly #isMeasured = new WeakSet<Work>();
  /** Stations whose newest append has an unknown outcome. */
  readonly #unknown = new Set<number>();
  readonly #failures: Failures;

  constructor(deps: CommandRunnerDeps) {
    this.#deps = deps;
    this.#failures = new Failures((...line) => deps.log.warn(...line), "a command could not be done");
  }

  /** Takes the station's commands again: the outcome of its append is known, or another host now finds it out. */
  admit(stationId: number): void {
    this.#unknown.delete(stationId);
  }

  /** Does the work and answers it. Returns work unanswered that waits for the end of a settlement. Never rejects. */
  async perform(stationId: number, asked: Work): Promise<Work | undefined> {
    const work = this.#measured(asked);
    try {
      const result = await this.#run(stationId, work);
      if (result === SETTLING) return work;
      work.answer(result);
    } catch (error) {
      // After an error of any kind the cached state may be wrong.
      this.#deps.cache.delete(stationId);
      this.#failures.failed(error, { stationId, commandId: work.commandId });
      work.answer(UNAVAILABLE);
    }
    return undefined;
  }

  /** Work whose answer is counted, with the time since its first turn. Work that waits for a settlement has several turns. */
  #measured(work: Work): Work {
    if (this.#isMeasured.has(work)) return work;
    const { commands, commandSeconds } = this.#deps.metrics;
    const startedAtMs = performance.now();
    const answer = (stationAnswer: StationAnswer): void => {
      const type = typeOf(work);
      commands.add({ type, result: resultOf(stationAnswer) });
      commandSeconds.observe({ type }, (performance.now() - startedAtMs) / 1_000);
      work.answer(stationAnswer);
    };
    const measured: Work = { ...work, answer };
    this.#isMeasured.add(measured);
    return measured;
  }

  async #run(stationId: number, work: Work): Promise<RunResult> {
    if (this.#unknown.has(stationId) && work.isAboutUnknown !== true) return UNAVAILABLE;
    let mayBeStored = false;
    for (let attempt = 0; attempt < STATION_LIMITS.conflictAttempts; attempt += 1) {
      const known = await this.#know(stationId, attempt > 0 || work.isAboutUnknown === true);
      const result = await this.#attempt(stationId, work, known).catch((error: unknown) => {
        if (isBusy(error)) return BUSY;
        throw error;
      });
      // Both answers mean that nothing was done, but an earlier attempt may be stored.
      if (mayBeStored && (result === BUSY || result === NO_SPACE)) return UNAVAILABLE;
      if (result !== "conflict" && result !== "overtaken") return result;
      mayBeStored ||= result === "overtaken";
      await new Promise((resolve) => setTimeout(resolve, attempt * STATION_LIMITS.conflictPauseMs));
    }
    return UNAVAILABLE;
  }

  /** One attempt on the station as `known`; `conflict` or `overtaken` when that is not its newest state. */
  async #attempt(stationId: number, work: Work, known: KnownStation): Promise<RunResult | "conflict" | "overtaken"> {
    const { state, sequence } = known;
    const command = typeof work.command === "function" ? state && work.command(state, sequence) : work.command;
    if (command === undefined || command === null) return { reply: NOTHING_DONE, intent: null, sequence };
    if (state === null && command.type !== "station_put") {
      return await this.#answerNewest(stationId, known, { command, reply: { ok: false, code: "station_unknown" } });
    }
    const { commandId, actor } = work;
    const kept = state && keptReply(state, { commandId, actor, command, atMs: this.#nowMs(known) });
    if (kept) {
      // A repeated lease command gets the lease as it is now, any other one its first answer.
      if (isOfLease(command)) return await this.#answerNewest(stationId, known, { command, reply: kept });
      return await this.#answer(known, kept);
    }
    if (isOfSettlement(known, work, command)) return SETTLING;

    // Gathered again after a conflict: the facts belong to one state, and this command may be in the log by now.
    const gathered: Gathered =
      state === null
        ? ({ command } as Gathered)
        : await gather(this.#deps.nc, stationId, state, work.commandId, command);
    // The settlement service has refused, and the refusal does not depend on the station's state.
    if ("answer" in gathered) return { ...gathered.answer, sequence };
    const atMs = this.#nowMs(known);
    const recordedConfirmation = state === null ? "none" : await this.#deps.confirmations.find(state, command, atMs);
    // A freeze that this host has not received withdraws every route but cash. No `await` may come between this check and
    // the step: meanwhile the switches could be read again and seem to be off.
    const isElectronic = command.type === "intent_create" && command.route !== "cash";
    if (isElectronic && !this.#deps.switches.isTrusted()) return UNAVAILABLE;
    const switchesRevision = this.#deps.switches.revision();
    const result = step(state, {
      ...gathered,
      recordedConfirmation,
      commandId: work.commandId,
      actor: work.actor,
      requestId: work.requestId,
      atMs,
      switches: this.#deps.switches.current(),
      settings: this.#deps.settings,
    });
    if (result.state === null || result.events.length === 0) {
      // A tick keeps the station's deadlines and completes its settlement, also when it changes nothing.
      if (command.type === "tick") this.#deps.onKnown(stationId, known);
      const { reply } = result;
      const isRepeated = "repeated" in result && result.repeated;
      if (isRepeated) return await this.#answer(known, reply, gathered);
      const { isRestoring } = work;
      const options = { command, reply, gathered, isRestoring, switchesRevision };
      const answer = await this.#answerNewest(stationId, known, options);
      if (answer !== "conflict" && isLeftOut(command, reply)) this.#deps.metrics.lateEvidenceLeftOut.add({});
      return answer;
    }
    // On a full disk no collection begins; those under way are completed with the space that is left.
    if (command.type === "intent_create" && isShort(diskOf(this.#deps.nc), "full")) return NO_SPACE;
    const committed = await this.#commit(stationId, known, {
      machineVersion: MACHINE_VERSION,
      version: known.version + 1,
      atMs,
      commandId: work.commandId,
      actor: work.actor,
      events: result.events,
      reply: result.reply,
      state: result.state,
    });
    if (committed === "failed") return UNAVAILABLE;
    if (committed === "conflict" || committed === "overtaken") return committed;
    this.#learn(stationId, committed.known);
    if (isOfSettlement(committed.known, work, command)) return SETTLING;
    return await this.#answer(committed.known, committed.reply, gathered);
  }

  #nowMs({ atMs }: KnownStation): number {
    return Math.max(this.#deps.clock.nowMs(), atMs);
  }

  async #know(stationId: number, mustReload: boolean): Promise<KnownStation> {
    const cached = mustReload ? undefined : this.#deps.cache.get(stationId);
    if (cached !== undefined) return cached;
    const known = toKnown(await this.#deps.stationLog.load(stationId));
    this.#learn(stationId, known);
    return known;
  }

  #learn(stationId: number, known: KnownStation): void {
    this.#deps.cache.set(stationId, known);
    this.#deps.onKnown(stationId, known);
  }

  /**
   * Appends until it is certain whether the commit is in the log. A station that was handed over meanwhile is left to its
   * next host, which has read the log.
   */
  async #commit(stationId: number, known: KnownStation, commit: Commit): Promise<CommitResult> {
    for (let attempt = 0; attempt < STATION_LIMITS.appendAttempts; attempt += 1) {
      if (!this.#deps.isServed(stationId)) {
        // Before the first attempt, no append of this commit is under way.
        if (attempt === 0 || !this.#deps.isHeld(stationId)) return this.#abandon(stationId);
        break;
      }
      const outcome = await this.#deps.stationLog.append(stationId, known.sequence, commit);
      if (outcome.kind === "stored") {
        const { state, version, atMs, reply } = commit;
        return { known: { state, version, atMs, sequence: outcome.sequence }, reply };
      }
      this.#deps.metrics[outcome.kind === "conflict" ? "conflicts" : "unknownAppends"].add({});
      // After an unknown outcome the conflict may be with this very commit.
      if (outcome.kind === "conflict" && attempt === 0) return "conflict";
      const last = await this.#readBack(stationId);
      if (last === undefined) continue;
      if (last !== null && last.sequence > known.sequence) {
        if (last.commit.commandId !== commit.commandId) return "overtaken";
        return { known: toKnown(last), reply: last.commit.reply };
      }
    }
    this.#unknown.add(stationId);
    this.#deps.onUnknownAppend(stationId, { commandId: commit.commandId, expectedSequence: known.sequence });
    return this.#abandon(stationId);
  }

  #abandon(stationId: number): "failed" {
    this.#deps.cache.delete(stationId);
    return "failed";
  }

  async #readBack(stationId: number): Promise<StoredCommit | null | undefined> {
    return await this.#deps.stationLog.load(stationId).catch(() => undefined);
  }

  /** An answer without a commit. Where it holds for the newest state only, the log first confirms that this is the newest. */
  async #answerNewest(
    stationId: number,
    known: KnownStation,
    options: Pick<Work, "isRestoring"> & {
      readonly command: HostCommand;
      readonly reply: StationReply;
      readonly gathered?: Gathered;
      /** The revision of the kill switches that the answer was made with. */
      readonly switchesRevision?: number;
    },
  ): Promise<StationAnswer | "conflict"> {
    const { command, reply, gathered, isRestoring, switchesRevision } = options;
    if (needsNewestSwitches(reply) && switchesRevision !== undefined) {
      if (!(await this.#deps.switches.prove())) return UNAVAILABLE;
      if (this.#deps.switches.revision() !== switchesRevision) return "conflict";
    }
    if (isRestoring === true || needsNewestState(command, reply)) {
      const confirmation = await this.#deps.stationLog.confirm(stationId, known.sequence);
      this.#deps.metrics.confirmations.add({ result: confirmation });
      if (confirmation === "outdated") return "conflict";
      if (confirmation === "unknown") return UNAVAILABLE;
    }
    return await this.#answer(known, reply, gathered);
  }

  async #answer({ state, sequence }: KnownStation, reply: StationReply, gathered?: Gathered): Promise<StationAnswer> {
    if (state === null) return { reply, intent: null, sequence };
    const recalled = gathered !== undefined && "recalled" in gathered ? gathered.recalled : undefined;
    const rendered = renderReply(state, reply, recalled) ?? (await this.#renderOld(state, reply));
    return rendered === undefined ? UNAVAILABLE : { ...rendered, sequence };
  }

  /** A kept reply about an intent that the state has dropped meanwhile. */
  async #renderOld(state: StationState, reply: StationReply): Promise<RenderedReply | undefined> {
    if (!reply.ok || !("intentId" in reply)) return undefined;
    const { intentId } = reply;
    const { recalled } = await recallIntent(this.#deps.nc, { stationId: state.stationId, intentId });
    return renderReply(state, reply, recalled);
  }
}

const NOTHING_DONE: StationReply = { ok: true, type: "accepted" };

function toKnown(stored: StoredCommit | null): KnownStation {
  if (stored === null) return { state: null, version: 0, sequence: 0, atMs: 0 };
  const { state, version, atMs } = stored.commit;
  return { state, version, atMs, sequence: stored.sequence };
}

/**
 * Whether the settlement under way belongs to this attestation, or to the payment that this confirmation is about. Then the
 * work is answered when the payment seam has answered.
 */
function isOfSettlement(known: KnownStation, work: Work, command: HostCommand): boolean {
  const intent = known.state?.intent;
  if (intent?.status !== "settling") return false;
  if (command.type === "intent_attest")
    return intent.intentId === command.intentId && intent.attestation?.commandId === work.commandId;
  return (
    command.type === "provider_confirm" &&
    intent.intentId === command.intentId &&
    intent.provider?.configId === work.actor.id &&
    intent.provider.providerReference === command.providerReference
  );
}

function isOfLease({ type }: HostCommand): boolean {
  return type === "lease_acquire" || type === "lease_release" || type === "lease_break";
}

/** Whether the station kept nothing of a refused report, because it is a repetition or exceeds the limit. */
function isLeftOut(command: HostCommand, reply: StationReply): boolean {
  if (command.type !== "intent_report" || reply.ok) return false;
  return reply.code === "intent_not_actionable" || BLOCKED_REASONS.some((reason) => reason === reply.code);
}

function isBusy(error: unknown): boolean {
  return error instanceof RefusedError && error.refusal.code === "busy";
}
