/** A host's final answer is correct for the newest state, also when the host has not received another host's commit. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Actor } from "../../machines/actor.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import type { StationCommand } from "../../machines/station/command.ts";
import { MACHINE_VERSION } from "../../machines/station/commit.ts";
import { step } from "../../machines/station/step.ts";
import type {
  RequestedCommand,
  StationFailure,
  StationResponse,
} from "../../services/bus/messages/station-commands.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { stationCommandSubject } from "../../services/bus/subjects.ts";
import { StationLog } from "../../services/stations/station-log.ts";
import { ONE_LOG, STATION_LOG, stationLogSubject } from "../support/one-log.ts";
import type { FaultProxy } from "./fault-proxy.ts";
import { CASHIER, REGISTRY, type RunningHost, type StationWorld, startStationWorld } from "./station-world.ts";

const OTHER: Actor = { kind: "cashier", id: 8, name: "Ben" };
const UNKNOWN_STATION = 999_999;

let world: StationWorld;
let host: RunningHost & { readonly proxy: FaultProxy };
let otherLog: StationLog;
beforeAll(async () => {
  world = await startStationWorld();
  otherLog = new StationLog(world.bus, ONE_LOG);
});
beforeEach(async () => {
  host = await world.startHostBehindProxy();
  // For ten seconds after its scan, a host also receives the commits of other hosts.
  await host.scanBus.close();
});
afterEach(() => world.stopHosts());
afterAll(async () => {
  otherLog.close();
  await world.stop();
});

/** Another host executes a command: it reads the newest commit and appends the next one. */
async function commitElsewhere(stationId: number, command: StationCommand): Promise<void> {
  const { state, sequence, version } = await world.newest(stationId);
  const atMs = Date.now();
  const commandId = `elsewhere:${version}`;
  const recordedConfirmation = "none";
  const facts = { atMs, commandId, actor: CASHIER };
  const settings = DEFAULT_MACHINE_SETTINGS;
  const next = step(state, { ...facts, command, recordedConfirmation, switches: NO_KILL_SWITCHES, settings });
  if (next.state === null || next.events.length === 0) throw new Error("The command has changed nothing.");
  const commit = { ...facts, ...next, machineVersion: MACHINE_VERSION, version: version + 1 };
  expect(await otherLog.append(stationId, sequence, commit)).toMatchObject({ kind: "stored" });
}

/** Sends one request, which no client repeats. */
async function renewByOther(stationId: number): Promise<StationResponse | StationFailure> {
  const command: RequestedCommand = { type: "lease_renew" };
  const request = JSON.stringify({ commandId: `test:${Math.random()}`, actor: OTHER, command });
  const answer = await world.bus.nc.request(stationCommandSubject(stationId), request, { timeout: 15_000 });
  return answer.json<StationResponse | StationFailure>();
}

async function confirmations(): Promise<number> {
  const { state } = await world.bus.jsm.streams.info(STATION_LOG.name, { subjects_filter: STATION_LOG.confirmSubject });
  return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
}

describe("a host whose state of a station is not the newest", () => {
  it("refusal: the newest state would accept the command, the command is done", async () => {
    const stationId = await world.openStation();
    await commitElsewhere(stationId, { type: "lease_release" });
    const { reply } = await world.ask(stationId, { type: "lease_acquire" }, { actor: OTHER });
    expect(reply).toMatchObject({ ok: true, lease: { cashierId: OTHER.id } });
  });

  it("refusal: the newest state refuses for another reason, the answer has that reason", async () => {
    const stationId = await world.openStation();
    await commitElsewhere(stationId, { type: "lease_release" });
    const { reply } = await world.ask(stationId, { type: "lease_renew" }, { actor: OTHER });
    expect(reply).toMatchObject({ ok: false, code: "lease_required" });
  });

  it("unknown station: another host has committed its first state, the command is done", async () => {
    const stationId = 777_001;
    expect((await world.ask(stationId, { type: "lease_acquire" })).reply).toMatchObject({ code: "station_unknown" });
    const revision = 1;
    const names = { organizationId: 1, filialId: 1, name: "Bar", currency: "EUR" };
    const station = { ...names, status: "active", revision } as const;
    const first = step(null, {
      commandId: "elsewhere:1",
      atMs: Date.now(),
      actor: REGISTRY,
      command: { type: "station_put", stationId, station },
      recordedConfirmation: "none",
      switches: NO_KILL_SWITCHES,
      settings: DEFAULT_MACHINE_SETTINGS,
    });
    if (first.state === null) throw new Error("The station was not created.");
    const facts = { machineVersion: MACHINE_VERSION, version: 1, atMs: Date.now(), commandId: "x", actor: REGISTRY };
    await otherLog.append(stationId, 0, { ...facts, ...first });
    expect((await world.ask(stationId, { type: "lease_acquire" })).reply).toMatchObject({ ok: true });
  });

  it("nothing to do: the newest state has something to do, it is done before the answer", async () => {
    const stationId = await world.openStation();
    await world.ask(stationId, { type: "lease_release" });
    await commitElsewhere(stationId, { type: "lease_acquire" });
    expect((await world.newest(stationId)).state.lease).not.toBeNull();
    expect((await world.ask(stationId, { type: "lease_release" })).reply).toMatchObject({ ok: true, lease: null });
    expect((await world.newest(stationId)).state.lease).toBeNull();
  });
});

describe("a host with a station that the log has lost", () => {
  it("the relay restores the station: the host commits it again, although its own state did not change", async () => {
    const stationId = await world.openStation();
    const { organizationId, filialId, name, currency, status, revision } = (await world.newest(stationId)).state;
    const station = { organizationId, filialId, name, currency, status, revision };
    await world.bus.jsm.streams.purge(STATION_LOG.name, { filter: stationLogSubject(stationId) });
    const command = { type: "station_put", stationId, station } as const;
    const request = { commandId: "announce:1", actor: REGISTRY, command, isRestoring: true } as const;
    expect((await askStation(world.bus.nc, stationId, request)).reply).toMatchObject({ ok: true });
    expect((await world.newest(stationId)).state).toMatchObject({ ...station, stationId });
  });
});

describe("a confirmation that a state is the newest", () => {
  it("the log does not answer: the caller gets `unavailable`, and the refusal when the log answers again", async () => {
    const stationId = await world.openStation();
    await world.ask(stationId, { type: "lease_renew" });
    const lost = host.proxy.loseNext(`"stream":"STATION_LOG_0"`);
    const asked = renewByOther(stationId);
    await lost;
    expect(await asked).toMatchObject({ failure: "unavailable" });
    expect(await renewByOther(stationId)).toMatchObject({
      reply: { code: "station_leased" },
    });
  });

  it("a command that commits, or a description that the station has already: no confirmation is made", async () => {
    const stationId = await world.openStation();
    const before = await confirmations();
    const { organizationId, filialId, name, currency, status, revision } = (await world.newest(stationId)).state;
    const station = { organizationId, filialId, name, currency, status, revision };
    expect((await world.ask(stationId, { type: "lease_renew" })).reply.ok).toBe(true);
    const put = await world.ask(stationId, { type: "station_put", stationId, station }, { actor: REGISTRY });
    expect(put.reply).toMatchObject({ ok: true });
    expect(await confirmations()).toBe(before);
  });

  it("200 confirmations: the log keeps a bounded number, and the station's newest commit", async () => {
    const stationId = await world.openStation();
    const { sequence } = await world.newest(stationId);
    for (let count = 0; count < 200; count += 1)
      expect(await renewByOther(stationId)).toMatchObject({
        reply: { code: "station_leased" },
      });
    await renewByOther(UNKNOWN_STATION);
    expect(await confirmations()).toBeLessThanOrEqual(STATION_LOG.maxMessagesPerSubject);
    expect((await world.newest(stationId)).sequence).toBe(sequence);
  });
});
