/**
 * Fills a bus with stations and credentials, as if that many displays had enrolled: real commits made by the machines,
 * real CREDENTIALS entries. It publishes many at once, because a bench must not spend an hour on its preparation.
 */

import { createHash, randomBytes } from "node:crypto";
import { partitionOf, partitionToken } from "../../machines/partition.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import type { StationCommand } from "../../machines/station/command.ts";
import { type Commit, encodeCommit, MACHINE_VERSION } from "../../machines/station/commit.ts";
import type { StationState } from "../../machines/station/state.ts";
import { step } from "../../machines/station/step.ts";
import type { Bus } from "../../services/bus/connection.ts";
import { stationLogSubject } from "../support/one-log.ts";

export interface PopulatedDevice {
  readonly stationId: number;
  readonly deviceId: number;
  readonly credential: string;
}

/** So many messages may wait for their acknowledgement. They keep the server busy, and its first error is noticed at once. */
const MAX_UNACKNOWLEDGED = 512;

/** Adds `count` stations from `firstStationId` on, each with one active display; every second one has an open order. */
export async function populate(bus: Bus, firstStationId: number, count: number): Promise<PopulatedDevice[]> {
  const devices: PopulatedDevice[] = [];
  const window = new Set<Promise<unknown>>();
  const publish = async (subject: string, body: string): Promise<void> => {
    const sent = bus.js.publish(subject, body).finally(() => window.delete(sent));
    window.add(sent);
    if (window.size >= MAX_UNACKNOWLEDGED) await Promise.race(window);
  };
  for (let stationId = firstStationId; stationId < firstStationId + count; stationId += 1) {
    const deviceId = stationId;
    const credential = `dp_${partitionToken(partitionOf(stationId))}_${randomBytes(32).toString("base64url")}`;
    devices.push({ stationId, deviceId, credential });
    await publish(stationLogSubject(stationId), encodeCommit(stationCommit(stationId, deviceId)));
    const hash = createHash("sha256").update(credential).digest("hex");
    const entry = { deviceId, stationId, scopes: ["device:read", "device:heartbeat", "display:read"] };
    await publish(`$KV.CREDENTIALS.${hash}`, JSON.stringify(entry));
  }
  await Promise.all(window);
  return devices;
}

/** The newest commit of a station of the population, encoded. */
export function commitOfStation(stationId: number): string {
  return encodeCommit(stationCommit(stationId, stationId));
}

function stationCommit(stationId: number, deviceId: number): Commit {
  const atMs = Date.now();
  const commands: StationCommand[] = [
    {
      type: "station_put",
      stationId,
      station: {
        organizationId: 1,
        filialId: 1,
        name: `Counter ${stationId}`,
        currency: "EUR",
        status: "active",
        revision: 1,
      },
    },
    {
      type: "device_put",
      device: {
        deviceId,
        name: `Display ${deviceId}`,
        kind: "customer_display",
        capabilities: ["display_total"],
        status: "active",
        handoffTarget: "",
        revision: 1,
      },
    },
  ];
  if (stationId % 2 === 0) {
    const amountMinor = String(100 + (stationId % 100_000));
    const order = {
      orderId: stationId,
      orderDisplayNumber: stationId % 1_000,
      amountMinor,
      currency: "EUR",
      status: "open",
      revision: 1,
    } as const;
    commands.push({ type: "order_put", order });
  }
  let state: StationState | null = null;
  let last: Commit | null = null;
  for (const [index, command] of commands.entries()) {
    const commandId = `populate:${stationId}:${index}`;
    const actor = { kind: "registry", id: 0 } as const;
    const next = step(state, {
      command,
      commandId,
      actor,
      atMs,
      switches: NO_KILL_SWITCHES,
      settings: DEFAULT_MACHINE_SETTINGS,
      recordedConfirmation: "none",
    });
    if (next.state === null) throw new Error("The machine made no station.");
    state = next.state;
    last = {
      machineVersion: MACHINE_VERSION,
      version: index + 1,
      atMs,
      commandId,
      actor,
      events: next.events,
      reply: next.reply,
      state,
    };
  }
  if (last === null) throw new Error("The machine made no station.");
  return last;
}
