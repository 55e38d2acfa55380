import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DeviceStatus, StationStatus } from "../../machines/standing.ts";
import { OPERATOR } from "../../services/bus/messages/caller.ts";
import { moveDevice } from "../../services/bus/messages/devices.ts";
import { enrollDevice } from "../../services/bus/messages/enrollment-codes.ts";
import { moveStation } from "../../services/bus/messages/stations.ts";
import { recordEvent } from "../../services/registry/sql/events.ts";
import {
  newActiveDevice,
  newCode,
  newDevice,
  newStation,
  type RegistryFixture,
  refusalOf,
  startRegistry,
} from "./registry-fixture.ts";

let fixture: RegistryFixture;
beforeAll(async () => {
  fixture = await startRegistry();
});
afterAll(() => fixture.stop());

type DeviceMove = "SUSPEND" | "RESUME" | "RESET" | "REVOKE";
const moved = async (deviceId: number, move: DeviceMove): Promise<DeviceStatus> =>
  (await fixture.ask(moveDevice, { caller: fixture.owner, deviceId, move })).device.status;

/** Each status with each action of the owner: the next status, no change, or a refusal. */
const DEVICE_MOVES: Record<DeviceStatus, Record<DeviceMove, DeviceStatus | "unchanged" | "conflict">> = {
  pending: { SUSPEND: "conflict", RESUME: "conflict", RESET: "pending", REVOKE: "revoked" },
  active: { SUSPEND: "suspended", RESUME: "unchanged", RESET: "pending", REVOKE: "revoked" },
  suspended: { SUSPEND: "unchanged", RESUME: "active", RESET: "pending", REVOKE: "revoked" },
  revoked: { SUSPEND: "conflict", RESUME: "conflict", RESET: "conflict", REVOKE: "unchanged" },
};

async function deviceInStatus(status: DeviceStatus): Promise<number> {
  const { stationId } = await newStation(fixture);
  if (status === "pending") return (await newDevice(fixture, stationId)).deviceId;
  const { deviceId } = await newActiveDevice(fixture, stationId);
  if (status === "suspended") await moved(deviceId, "SUSPEND");
  if (status === "revoked") await moved(deviceId, "REVOKE");
  return deviceId;
}

const stored = async (deviceId: number) => {
  const [row] = await fixture.sql<[{ status: DeviceStatus; revision: number }]>`
    select status, revision from devices where device_id = ${deviceId}`;
  return row;
};

describe("a device's standing", () => {
  for (const [from, moves] of Object.entries(DEVICE_MOVES) as [DeviceStatus, Record<DeviceMove, string>][]) {
    for (const [move, to] of Object.entries(moves) as [DeviceMove, string][]) {
      test(`${from} ─${move}─► ${to}`, async () => {
        const deviceId = await deviceInStatus(from);
        const before = await stored(deviceId);
        if (to === "conflict") {
          const refusal = await refusalOf(moved(deviceId, move));
          expect(refusal.code).toBe("conflict");
          expect(refusal.detail).toMatch(
            new RegExp(`^A ${from} device cannot be (suspended|resumed|reset|revoked)\\.$`),
          );
          expect(await stored(deviceId)).toEqual(before);
        } else if (to === "unchanged") {
          expect(await moved(deviceId, move)).toBe(from);
          expect(await stored(deviceId)).toEqual(before);
        } else {
          expect(await moved(deviceId, move)).toBe(to);
          expect(await stored(deviceId)).toEqual({ status: to, revision: before.revision + 1 });
        }
      });
    }
  }

  test("a reset device: has lost its credential, and claims a new code", async () => {
    const { stationId } = await newStation(fixture);
    const { deviceId } = await newActiveDevice(fixture, stationId);
    await moved(deviceId, "RESET");
    const valid =
      await fixture.sql`select 1 from device_credentials where device_id = ${deviceId} and revoked_at is null`;
    expect(valid).toHaveLength(0);
    const { device: again } = await fixture.ask(enrollDevice, {
      address: "127.0.0.1",
      code: await newCode(fixture, deviceId),
    });
    expect(again.deviceId).toBe(deviceId);
    expect((await stored(deviceId)).status).toBe("active");
  });

  test("a device that was suspended and resumed: still has its credential", async () => {
    const { stationId } = await newStation(fixture);
    const { deviceId } = await newActiveDevice(fixture, stationId);
    await moved(deviceId, "SUSPEND");
    await moved(deviceId, "RESUME");
    const valid =
      await fixture.sql`select 1 from device_credentials where device_id = ${deviceId} and revoked_at is null`;
    expect(valid).toHaveLength(1);
  });

  test.each(["RESET", "REVOKE"] as const)("%s with an open code: voids the code", async (move) => {
    const { stationId } = await newStation(fixture);
    const { deviceId } = await newDevice(fixture, stationId);
    const code = await newCode(fixture, deviceId);
    await moved(deviceId, move);
    expect(await refusalOf(fixture.ask(enrollDevice, { address: "127.0.0.1", code }))).toEqual({
      code: "enrollment_code_invalid",
    });
  });

  test("two suspensions at once: both are answered, and the device changes once, with one event", async () => {
    for (let round = 0; round < 10; round += 1) {
      const { stationId } = await newStation(fixture);
      const { deviceId } = await newActiveDevice(fixture, stationId);
      const before = await stored(deviceId);
      const statuses = await Promise.all([moved(deviceId, "SUSPEND"), moved(deviceId, "SUSPEND")]);
      expect(statuses).toEqual(["suspended", "suspended"]);
      expect((await stored(deviceId)).revision).toBe(before.revision + 1);
      const events = await fixture.sql`
        select 1 from registry_events where action = 'device_suspended' and subject_id = ${deviceId}`;
      expect(events).toHaveLength(1);
    }
  });
});

type StationMove = "SUSPEND" | "RESUME" | "CLOSE";
const STATION_MOVES: Record<StationStatus, Record<StationMove, StationStatus | "unchanged" | "conflict">> = {
  active: { SUSPEND: "suspended", RESUME: "unchanged", CLOSE: "closed" },
  suspended: { SUSPEND: "unchanged", RESUME: "active", CLOSE: "closed" },
  closed: { SUSPEND: "conflict", RESUME: "conflict", CLOSE: "unchanged" },
};

const movedStation = async (stationId: number, move: StationMove): Promise<StationStatus> =>
  (await fixture.ask(moveStation, { caller: fixture.owner, stationId, move })).station.status;

describe("a station's standing", () => {
  for (const [from, moves] of Object.entries(STATION_MOVES) as [StationStatus, Record<StationMove, string>][]) {
    for (const [move, to] of Object.entries(moves) as [StationMove, string][]) {
      test(`${from} ─${move}─► ${to}`, async () => {
        const { stationId } = await newStation(fixture);
        if (from === "suspended") await movedStation(stationId, "SUSPEND");
        if (from === "closed") await movedStation(stationId, "CLOSE");
        if (to === "conflict") expect((await refusalOf(movedStation(stationId, move))).code).toBe("conflict");
        else expect(await movedStation(stationId, move)).toBe(to === "unchanged" ? from : to);
      });
    }
  }

  test("a closed station: its open codes are void, and it accepts no devices and no codes", async () => {
    const { stationId } = await newStation(fixture);
    const { deviceId } = await newDevice(fixture, stationId);
    const code = await newCode(fixture, deviceId);
    await movedStation(stationId, "CLOSE");
    expect(await refusalOf(fixture.ask(enrollDevice, { address: "127.0.0.1", code }))).toEqual({
      code: "enrollment_code_invalid",
    });
    expect((await refusalOf(newCode(fixture, deviceId))).code).toBe("conflict");
    expect((await refusalOf(newDevice(fixture, stationId))).code).toBe("conflict");
  });

  test("a code that is issued while the station closes: void too", async () => {
    const { stationId } = await newStation(fixture);
    const { deviceId } = await newDevice(fixture, stationId);
    const { organizationId } = fixture.owner;
    const waiting = async () =>
      (
        await fixture.sql`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      ).length;
    const both = await fixture.sql.begin(async (tx) => {
      // Until this transaction ends, no other one of the organization can record its event and commit.
      const subject = { kind: "organization", id: organizationId } as const;
      await recordEvent(tx, { organizationId, actor: OPERATOR, action: "slow_change", subject });
      const issued = newCode(fixture, deviceId);
      await expect.poll(waiting).toBe(1);
      const closed = movedStation(stationId, "CLOSE");
      await expect.poll(waiting).toBe(2);
      return { issued, closed };
    });
    const [code] = await Promise.all([both.issued, both.closed]);
    expect(await refusalOf(fixture.ask(enrollDevice, { address: "127.0.0.1", code }))).toEqual({
      code: "enrollment_code_invalid",
    });
  });
});
