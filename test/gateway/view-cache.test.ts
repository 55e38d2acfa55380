/** Rendered views are kept for a bounded number of devices and never outlive what they were made from. */
import { describe, expect, it } from "vitest";
import { ViewCache } from "../../gateway/polls/view-cache.ts";
import { StationReplica } from "../../gateway/replica/station-replica.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { type KillSwitches, NO_KILL_SWITCHES } from "../../machines/standing.ts";
import type { StationCommand } from "../../machines/station/command.ts";
import { encodeCommit, MACHINE_VERSION } from "../../machines/station/commit.ts";
import type { StationState } from "../../machines/station/state.ts";
import { step } from "../../machines/station/step.ts";
import { stationLogSubject } from "../../services/bus/subjects.ts";

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
    state = step(state, { ...input, settings: DEFAULT_MACHINE_SETTINGS }).state;
  }
  const reply = { ok: true, type: "accepted" } as const;
  const facts = { machineVersion: MACHINE_VERSION, version: 2, atMs: NOW_MS, commandId: "c", actor, events: [], reply };
  return Buffer.from(encodeCommit({ ...facts, state: state as StationState }));
}

function world(maxDevices = 100) {
  const stations = new StationReplica();
  const current: { switches: KillSwitches } = { switches: NO_KILL_SWITCHES };
  const put = (stationId: number, name = "Counter"): void =>
    stations.apply(stationLogSubject(stationId), commitOf(stationId, name));
  const views = new ViewCache({ stations, switches: () => current.switches, maxDevices });
  const look = (stationId: number, slot = stationId) => views.view("self", slot, stationId + 1_000, stationId, NOW_MS);
  return { stations, current, put, views, look };
}

describe("a view", () => {
  it("is made once per commit and switches", () => {
    const { put, look, current } = world();
    put(1);
    const first = look(1);
    expect(look(1)).toBe(first);
    put(1, "Renamed");
    expect(look(1)?.head).toContain("Renamed");
    const renamed = look(1);
    current.switches = { ...NO_KILL_SWITCHES, platform: true };
    expect(look(1)).not.toBe(renamed);
    expect(look(1)?.blocked).toBe("platform_frozen");
  });

  it("is gone with its station, and made anew from a log that is read again", () => {
    const { put, look, stations } = world();
    put(1);
    look(1);
    stations.reset();
    expect(look(1)).toBeUndefined();
    put(1, "Again");
    expect(look(1)?.head).toContain("Again");
    stations.apply(stationLogSubject(1), new Uint8Array());
    expect(look(1)).toBeUndefined();
  });

  it("is its own device's when a slot changes hands", () => {
    const { put, look } = world();
    put(1, "First");
    put(2, "Second");
    expect(look(1, 7)?.head).toContain("First");
    expect(look(2, 7)?.head).toContain("Second");
    expect(look(1, 7)?.head).toContain("First");
  });

  it("does not survive a clock that is set back", () => {
    const { put, views } = world();
    put(1);
    const late = views.view("self", 1, 1_001, 1, NOW_MS);
    expect(views.view("self", 1, 1_001, 1, NOW_MS - 5)).not.toBe(late);
  });

  it("takes another's place when there are as many as may be, and all still are right", () => {
    const { put, look, views } = world(10);
    for (let round = 0; round < 3; round += 1) {
      for (let station = 1; station <= 50; station += 1) {
        put(station, `Counter ${station}-${round}`);
        expect(look(station)?.head).toContain(`Counter ${station}-${round}`);
        expect(views.size).toBeLessThanOrEqual(10);
      }
    }
    expect(views.size).toBe(10);
  });
});
