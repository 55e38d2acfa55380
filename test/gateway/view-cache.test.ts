/** The gateway caches views for a limited number of devices, and never for longer than their sources stay the same. */

import { describe, expect, it } from "vitest";
import { StationReplica } from "../../gateway/read-model/station-replica.ts";
import { ViewCache } from "../../gateway/read-model/view-cache.ts";
import type { Actor } from "../../machines/actor.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { type KillSwitches, NO_KILL_SWITCHES } from "../../machines/standing.ts";
import type { StationCommand } from "../../machines/station/command.ts";
import { decodeCommit, encodeCommit, MACHINE_VERSION } from "../../machines/station/commit.ts";
import type { StationState } from "../../machines/station/state.ts";
import { step } from "../../machines/station/step.ts";
import { ONE_LOG, stationLogSubject } from "../support/one-log.ts";

const NOW_MS = 1_800_000_000_000;
const actor = { kind: "registry", id: 0 } as const;

function commitOf(stationId: number, name: string): Uint8Array {
  const commands: StationCommand[] = [
    {
      type: "station_put",
      stationId,
      station: { organizationId: 1, filialId: 1, name, currency: "EUR", status: "active", revision: 1 },
    },
    {
      type: "device_put",
      device: {
        deviceId: stationId + 1_000,
        name: "Display",
        kind: "customer_display",
        capabilities: ["display_total"],
        status: "active",
        handoffTarget: "",
        revision: 1,
      },
    },
  ];
  let state: StationState | null = null;
  for (const command of commands) {
    const input = { command, commandId: "c", actor, atMs: NOW_MS, switches: NO_KILL_SWITCHES };
    state = step(state, { ...input, settings: DEFAULT_MACHINE_SETTINGS, recordedConfirmation: "none" }).state;
  }
  const reply = { ok: true, type: "accepted" } as const;
  const facts = { machineVersion: MACHINE_VERSION, version: 2, atMs: NOW_MS, commandId: "c", actor, events: [], reply };
  return Buffer.from(encodeCommit({ ...facts, state: state as StationState }));
}

/** A commit of a station that collects by QR. Displays with an even id can show a QR, the others cannot. */
function qrCommitOf(stationId: number, deviceIds: readonly number[], qrPayload: string): Uint8Array {
  const cashier = { kind: "cashier", id: 31, name: "Casey" } as const;
  const order = {
    orderId: 1,
    orderDisplayNumber: 7,
    amountMinor: "1250",
    currency: "EUR",
    status: "open",
    revision: 1,
  };
  const commands: [StationCommand, Actor][] = [
    [{ type: "provider_put", provider: { configId: 81, revision: 1 } }, actor],
    ...deviceIds.map((deviceId): [StationCommand, Actor] => [
      {
        type: "device_put",
        device: {
          deviceId,
          name: "Display",
          kind: "customer_display",
          capabilities: deviceId % 2 === 0 ? ["display_total", "qr_dynamic_present"] : ["display_total"],
          status: "active",
          handoffTarget: "",
          revision: 1,
        },
      },
      actor,
    ]),
    [{ type: "lease_acquire" }, cashier],
    [{ type: "intent_create", route: "dynamic_qr", intentId: 5, order } as StationCommand, cashier],
    [{ type: "qr_ready", intentId: 5, qrPayload, providerReference: "PAY-1" }, actor],
  ];
  let { state } = decodeCommit(Buffer.from(commitOf(stationId, "Counter")).toString());
  for (const [index, [command, by]] of commands.entries()) {
    const input = { command, commandId: `q${index}`, actor: by, atMs: NOW_MS, switches: NO_KILL_SWITCHES };
    state =
      step(state, { ...input, settings: DEFAULT_MACHINE_SETTINGS, recordedConfirmation: "none" }).state ??
      expect.unreachable();
  }
  expect(state.intent?.status).toBe("presented");
  const reply = { ok: true, type: "accepted" } as const;
  const facts = { machineVersion: MACHINE_VERSION, version: 9, atMs: NOW_MS, commandId: "q", actor, events: [], reply };
  return Buffer.from(encodeCommit({ ...facts, state }));
}

function apply(stations: StationReplica, subject: string, data: Uint8Array): void {
  stations.targets[0]?.apply(subject, data, NOW_MS);
}

function world(maxDevices = 100) {
  const stations = new StationReplica(ONE_LOG);
  const current: { switches: KillSwitches } = { switches: NO_KILL_SWITCHES };
  const put = (stationId: number, name = "Counter"): void =>
    apply(stations, stationLogSubject(stationId), commitOf(stationId, name));
  const views = new ViewCache({ stations, switches: () => current.switches, maxDevices });
  const readView = (stationId: number, slot = stationId) =>
    views.view("self", slot, stationId + 1_000, stationId, NOW_MS);
  return { stations, current, put, views, readView };
}

describe("the views of one station's displays", () => {
  const DEVICES = [2_001, 2_002, 2_003, 2_004, 2_005];
  const display = (views: ViewCache, deviceId: number) => views.view("display", deviceId, deviceId, 1, NOW_MS);

  it("a QR: only on displays that declare it; two texts at most for any number of displays", () => {
    const { stations, views } = world();
    apply(stations, stationLogSubject(1), qrCommitOf(1, DEVICES, "000201-A"));
    const shown = DEVICES.map((deviceId) => display(views, deviceId));
    expect(shown.map((view) => view?.head.includes('"qr_payload":"000201-A"'))).toEqual([
      false,
      true,
      false,
      true,
      false,
    ]);
    expect(shown.map((view) => /"state":"(\w+)"/.exec(view?.head ?? "")?.[1])).toEqual([
      "total",
      "qr",
      "total",
      "qr",
      "total",
    ]);
    expect(new Set(shown.map((view) => view?.etag)).size).toBe(2);
    // The cache stores each text once: 400,000 displays with the same text share it.
    expect(views.displayTexts).toBe(2);
  });

  it("the next commit: all views are made again, also after another device's view was dropped", () => {
    const { stations, views } = world(2);
    for (const payload of ["000201-A", "000201-B", "000201-C"]) {
      apply(stations, stationLogSubject(1), qrCommitOf(1, DEVICES, payload));
      for (const deviceId of DEVICES) {
        expect(display(views, deviceId)?.head.includes(payload)).toBe(deviceId % 2 === 0);
        expect(views.displayTexts).toBeLessThanOrEqual(2);
      }
    }
  });

  it("a frozen provider: the total is shown, and the QR again after the freeze", () => {
    const { stations, views, current } = world();
    apply(stations, stationLogSubject(1), qrCommitOf(1, DEVICES, "000201-A"));
    const isQr = (): boolean => display(views, 2_002)?.head.includes('"state":"qr"') === true;
    expect(isQr()).toBe(true);
    current.switches = { ...NO_KILL_SWITCHES, providers: new Set([81]) };
    expect(isQr()).toBe(false);
    current.switches = NO_KILL_SWITCHES;
    expect(isQr()).toBe(true);
  });

  it("the deadline of the QR: no QR after it, without a commit", () => {
    const { stations, views } = world();
    apply(stations, stationLogSubject(1), qrCommitOf(1, DEVICES, "000201-A"));
    display(views, 2_002);
    const later = views.view("display", 2_002, 2_002, 1, NOW_MS + DEFAULT_MACHINE_SETTINGS.intentLifetimeMs);
    expect(later?.head).not.toContain("000201-A");
    expect(display(views, 2_002)?.head, "shown again after the clock is set back").toContain("000201-A");
  });
});

describe("a cached view", () => {
  it("a device that shows no sign of reading: its count of answers without a body continues with the next view", () => {
    const { put, readView, current } = world();
    put(1);
    const first = readView(1) ?? expect.unreachable();
    first.unchangedInARow = 500;
    put(1, "Renamed");
    expect(readView(1)?.unchangedInARow).toBe(500);
    current.switches = { ...NO_KILL_SWITCHES, platform: true };
    expect(readView(1)?.unchangedInARow).toBe(500);
    put(2);
    expect(readView(2, 1)?.unchangedInARow, "another device").toBe(0);
  });

  it("one commit and one state of the switches: made once", () => {
    const { put, readView, current } = world();
    put(1);
    const first = readView(1);
    expect(readView(1)).toBe(first);
    put(1, "Renamed");
    expect(readView(1)?.head).toContain("Renamed");
    const renamed = readView(1);
    current.switches = { ...NO_KILL_SWITCHES, platform: true };
    expect(readView(1)).not.toBe(renamed);
    expect(readView(1)?.blocked).toBe("platform_frozen");
  });

  it("its station is dropped: the view is dropped too, and made again when the log is read again", () => {
    const { put, readView, stations } = world();
    put(1);
    readView(1);
    stations.targets[0]?.reset();
    expect(readView(1)).toBeUndefined();
    put(1, "Again");
    expect(readView(1)?.head).toContain("Again");
    apply(stations, stationLogSubject(1), new Uint8Array());
    expect(readView(1)).toBeUndefined();
  });

  it("another device gets the slot: the view is that device's", () => {
    const { put, readView } = world();
    put(1, "First");
    put(2, "Second");
    expect(readView(1, 7)?.head).toContain("First");
    expect(readView(2, 7)?.head).toContain("Second");
    expect(readView(1, 7)?.head).toContain("First");
  });

  it("the clock is set back: made again", () => {
    const { put, views } = world();
    put(1);
    const late = views.view("self", 1, 1_001, 1, NOW_MS);
    expect(views.view("self", 1, 1_001, 1, NOW_MS - 5)).not.toBe(late);
  });

  it("more views than the limit: each replaces another one, and all are correct", () => {
    const { put, readView, views } = world(10);
    for (let round = 0; round < 3; round += 1) {
      for (let station = 1; station <= 50; station += 1) {
        put(station, `Counter ${station}-${round}`);
        expect(readView(station)?.head).toContain(`Counter ${station}-${round}`);
        expect(views.size).toBeLessThanOrEqual(10);
      }
    }
    expect(views.size).toBe(10);
  });
});
