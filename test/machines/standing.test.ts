/** Standing: the tables of both machines, and which of several reasons is named. */
import { describe, expect, it } from "vitest";
import {
  BLOCKED_REASONS,
  type BlockedReason,
  blockedReason,
  type DeviceStandingEvent,
  type DeviceStatus,
  deviceStandingMachine,
  type KillSwitches,
  NO_KILL_SWITCHES,
  type StandingSubject,
  type StationStandingEvent,
  type StationStatus,
  stationStandingMachine,
} from "../../machines/standing.ts";
import { holdsItsTable, type TransitionTable } from "./transition-table.ts";

type StationEventType = StationStandingEvent["type"];
type DeviceEventType = DeviceStandingEvent["type"];

const STATION: TransitionTable<StationStatus, StationEventType> = {
  active: { SUSPEND: "suspended", RESUME: "not taken", CLOSE: "closed" },
  suspended: { SUSPEND: "not taken", RESUME: "active", CLOSE: "closed" },
  closed: { SUSPEND: "not taken", RESUME: "not taken", CLOSE: "not taken" },
};

const DEVICE: TransitionTable<DeviceStatus, DeviceEventType> = {
  pending: {
    CLAIM: "active",
    SUSPEND: "not taken",
    RESUME: "not taken",
    // A reset of a reset device is accepted: it issues a fresh code, and the state does not change.
    RESET: "pending",
    REVOKE: "revoked",
  },
  active: { CLAIM: "not taken", SUSPEND: "suspended", RESUME: "not taken", RESET: "pending", REVOKE: "revoked" },
  suspended: { CLAIM: "not taken", SUSPEND: "not taken", RESUME: "active", RESET: "pending", REVOKE: "revoked" },
  revoked: {
    CLAIM: "not taken",
    SUSPEND: "not taken",
    RESUME: "not taken",
    RESET: "not taken",
    REVOKE: "not taken",
  },
};

holdsItsTable({
  name: "station standing",
  machine: stationStandingMachine,
  contextIn: (_state: StationStatus) => ({}),
  event: (type: StationEventType) => ({ type }),
  table: STATION,
});

holdsItsTable({
  name: "device standing",
  machine: deviceStandingMachine,
  contextIn: (_state: DeviceStatus) => ({}),
  event: (type: DeviceEventType) => ({ type }),
  table: DEVICE,
});

describe("the blocked reason", () => {
  const SUBJECT: StandingSubject = {
    organizationId: 11,
    stationId: 12,
    stationStatus: "active",
    device: { deviceId: 701, status: "active" },
  };

  /** A situation with each reason alone. */
  const CAUSES: Record<BlockedReason, { readonly subject: StandingSubject; readonly switches: KillSwitches }> = {
    device_suspended: {
      subject: { ...SUBJECT, device: { deviceId: 701, status: "suspended" } },
      switches: NO_KILL_SWITCHES,
    },
    device_frozen: { subject: SUBJECT, switches: { ...NO_KILL_SWITCHES, devices: new Set([701]) } },
    station_suspended: { subject: { ...SUBJECT, stationStatus: "suspended" }, switches: NO_KILL_SWITCHES },
    station_closed: { subject: { ...SUBJECT, stationStatus: "closed" }, switches: NO_KILL_SWITCHES },
    station_frozen: { subject: SUBJECT, switches: { ...NO_KILL_SWITCHES, stations: new Set([12]) } },
    organization_frozen: { subject: SUBJECT, switches: { ...NO_KILL_SWITCHES, organizations: new Set([11]) } },
    platform_frozen: { subject: SUBJECT, switches: { ...NO_KILL_SWITCHES, platform: true } },
  };

  it("good standing: it is empty", () => {
    expect(blockedReason(SUBJECT, NO_KILL_SWITCHES)).toBe("");
  });

  it.each(BLOCKED_REASONS)("%s alone: it is named", (reason) => {
    const { subject, switches } = CAUSES[reason];
    expect(blockedReason(subject, switches)).toBe(reason);
  });

  it("switches of other devices, stations and organizations: it is empty", () => {
    const others: KillSwitches = {
      platform: false,
      devices: new Set([702]),
      stations: new Set([13]),
      organizations: new Set([14]),
      providers: new Set([81]),
    };
    expect(blockedReason(SUBJECT, others)).toBe("");
  });

  it("all reasons at once: the device's are named first, then the station's, then the organization's", () => {
    const switches: KillSwitches = {
      platform: true,
      devices: new Set([701]),
      stations: new Set([12]),
      organizations: new Set([11]),
      providers: new Set([81]),
    };
    const named: string[] = [];
    let subject: StandingSubject = {
      ...SUBJECT,
      stationStatus: "suspended",
      device: { deviceId: 701, status: "suspended" },
    };
    named.push(blockedReason(subject, switches));
    subject = { ...subject, device: { deviceId: 701, status: "active" } };
    named.push(blockedReason(subject, switches));
    const withoutDevice: StandingSubject = { organizationId: 11, stationId: 12, stationStatus: "suspended" };
    named.push(blockedReason(withoutDevice, switches));
    named.push(blockedReason({ ...withoutDevice, stationStatus: "active" }, switches));
    named.push(blockedReason({ ...withoutDevice, stationStatus: "active" }, { ...switches, stations: new Set() }));
    expect(named).toEqual([
      "device_suspended",
      "device_frozen",
      "station_suspended",
      "station_frozen",
      "organization_frozen",
    ]);
  });
});
