/** Long lists, page by page: no row is missing or twice, also while rows are added, and each page fits into a message. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BOUNDS } from "../../services/bus/bounds.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { listDevices, moveDevice } from "../../services/bus/messages/devices.ts";
import { issueEnrollmentCode, listEnrollmentCodes } from "../../services/bus/messages/enrollment-codes.ts";
import { createFilial, listFilials } from "../../services/bus/messages/filials.ts";
import { listStations } from "../../services/bus/messages/stations.ts";
import { listUsers } from "../../services/bus/messages/users.ts";
import { addOrganization, newDevice, newStation, type RegistryFixture, startRegistry } from "./registry-fixture.ts";

const MANY = 40_000;
const PIECE = 5_000;
/** Rows for more than two pages; the last page is not full. */
const SEVERAL = 2 * BOUNDS.listed + 7;

let fixture: RegistryFixture;
let caller: Caller;
let filialId: number;
let stationId: number;
beforeAll(async () => {
  fixture = await startRegistry();
  caller = await addOrganization(fixture.sql, "Big Chain");
  ({ filialId, stationId } = await newStation(fixture, caller));
});
afterAll(() => fixture.stop());

interface Page {
  readonly ids: readonly number[];
  readonly hasMore: boolean;
}

/** Reads all pages in turn and returns all ids. `between` runs before each page but the first. */
async function walk(ask: (last: number | undefined) => Promise<Page>, between = async () => {}): Promise<number[]> {
  const seen: number[] = [];
  for (let hasMore = true; hasMore; ) {
    const page = await ask(seen.at(-1));
    expect(page.ids.length > 0 || !page.hasMore).toBe(true);
    expect(page.ids.length).toBeLessThanOrEqual(BOUNDS.listed);
    seen.push(...page.ids);
    ({ hasMore } = page);
    if (hasMore) await between();
  }
  return seen;
}

const limit = BOUNDS.listed;
const devicesAfter =
  (only: { readonly stationId?: number; readonly status?: "pending" | "revoked" } = {}) =>
  async (sinceId = 0): Promise<Page> => {
    const { devices, hasMore } = await fixture.ask(listDevices, { caller, ...only, sinceId, limit });
    return { ids: devices.map((device) => device.deviceId), hasMore };
  };

/** The ids that a query finds, ascending. */
const idsOf = async (found: Promise<readonly { id: number }[]>): Promise<number[]> =>
  (await found).map((row) => row.id).toSorted((a, b) => a - b);

describe("pages of forty thousand devices", () => {
  beforeAll(async () => {
    // Several statements, so that none exceeds the statement timeout on a busy machine.
    for (let from = 1; from <= MANY; from += PIECE) {
      await fixture.sql`
        insert into devices (organization_id, station_id, name, kind, capabilities, status)
        select ${caller.organizationId}, ${stationId}, 'Device ' || n, 'customer_display', '{}',
               case when n % 100 = 0 then 'pending' else 'revoked' end
        from generate_series(${from}::int, ${from + PIECE - 1}::int) as n`;
    }
    await fixture.sql`analyze devices`;
  });

  test("devices are registered and revoked in between: each device once, in order", async () => {
    const before = await idsOf(
      fixture.sql`select device_id as id from devices where organization_id = ${caller.organizationId}`,
    );
    expect(before.length).toBeGreaterThanOrEqual(MANY);
    const elsewhere = await newStation(fixture, caller);
    const added: number[] = [];
    let pages = 0;
    const seen = await walk(devicesAfter(), async () => {
      pages += 1;
      if (pages % 10 !== 0) return;
      const { deviceId } = await newDevice(fixture, elsewhere.stationId, caller);
      added.push(deviceId);
      await fixture.ask(moveDevice, { caller, deviceId: before[pages * 400 + 99] ?? 0, move: "REVOKE" });
    });
    expect(added.length).toBeGreaterThan(5);
    expect(seen).toEqual([...before, ...added]);
  });

  test("by station and status: read from an index", async () => {
    const { organizationId } = caller;
    const pending = await idsOf(fixture.sql`
      select device_id as id from devices
      where organization_id = ${organizationId} and station_id = ${stationId} and status = 'pending'`);
    expect(await walk(devicesAfter({ stationId, status: "pending" }))).toEqual(pending);
    const plan = JSON.stringify(
      await fixture.sql`
      explain select * from devices
      where organization_id = ${organizationId} and status = 'pending' and device_id > ${MANY / 10}
      order by device_id limit 501`,
    );
    expect(plan).toContain("devices_of_status");
    expect(plan).not.toMatch(/Seq Scan|Sort/);
  });

  test("devices with the longest texts: each page fits into its message", async () => {
    const wide = await newStation(fixture, caller);
    await fixture.sql`
      insert into devices (organization_id, station_id, name, kind, capabilities, handoff_target, status)
      select ${caller.organizationId}, ${wide.stationId}, repeat('\u20ac', 200), 'smart_pos_companion', '{}',
             repeat(chr(1), ${BOUNDS.handoffTargetCharacters}), 'revoked'
      from generate_series(1, ${BOUNDS.listed})`;
    const first = await devicesAfter({ stationId: wide.stationId })();
    expect(first.hasMore).toBe(true);
    expect(first.ids.length).toBeGreaterThan(50);
    expect(await walk(devicesAfter({ stationId: wide.stationId }))).toHaveLength(BOUNDS.listed);
  });
});

describe("pages of other lists", () => {
  test("stations, of the organization or of one filial: each once", async () => {
    const { organizationId } = caller;
    const { filial } = await fixture.ask(createFilial, { caller, name: "Second" });
    await fixture.sql`
      insert into stations (organization_id, filial_id, name, currency)
      select ${organizationId}, case when n % 2 = 0 then ${filialId}::bigint else ${filial.filialId}::bigint end, 'Station', 'EUR'
      from generate_series(1, ${2 * SEVERAL}) as n`;
    const after =
      (only: { readonly filialId?: number } = {}) =>
      async (sinceId = 0): Promise<Page> => {
        const { stations, hasMore } = await fixture.ask(listStations, { caller, ...only, sinceId, limit });
        return { ids: stations.map((station) => station.stationId), hasMore };
      };
    const all = await idsOf(
      fixture.sql`select station_id as id from stations where organization_id = ${organizationId}`,
    );
    expect(await walk(after())).toEqual(all);
    expect(await walk(after({ filialId: filial.filialId }))).toHaveLength(SEVERAL);
  });

  test("filials and people: each once", async () => {
    const { organizationId } = caller;
    await fixture.sql`
      insert into filials (organization_id, name) select ${organizationId}, 'F' from generate_series(1, ${SEVERAL})`;
    await fixture.sql`
      insert into users (organization_id, email, name, role, password_hash)
      select ${organizationId}, n || '@big.example', 'P', 'cashier', '' from generate_series(1, ${SEVERAL}) as n`;
    const filials = await walk(async (sinceId = 0) => {
      const page = await fixture.ask(listFilials, { caller, sinceId, limit });
      return { ids: page.filials.map((filial) => filial.filialId), hasMore: page.hasMore };
    });
    expect(filials).toEqual(
      await idsOf(fixture.sql`select filial_id as id from filials where organization_id = ${organizationId}`),
    );
    const users = await walk(async (sinceId = 0) => {
      const page = await fixture.ask(listUsers, { caller, sinceId, limit });
      return { ids: page.users.map((user) => user.userId), hasMore: page.hasMore };
    });
    expect(users).toEqual(
      await idsOf(fixture.sql`select user_id as id from users where organization_id = ${organizationId}`),
    );
  });

  test("a device's codes while newer ones are issued: each older one once, newest first", async () => {
    const { organizationId } = caller;
    const { deviceId } = await newDevice(fixture, (await newStation(fixture, caller)).stationId, caller);
    await fixture.sql`
      insert into enrollment_codes (organization_id, device_id, code_hash, expires_at, revoked_at)
      select ${organizationId}, ${deviceId}, sha256(convert_to(n || 'code', 'UTF8')), now(), now()
      from generate_series(1, ${SEVERAL}) as n`;
    const before = await idsOf(fixture.sql`select code_id as id from enrollment_codes where device_id = ${deviceId}`);
    const seen = await walk(
      async (beforeId) => {
        const request = { caller, deviceId, beforeId, limit };
        const page = await fixture.ask(listEnrollmentCodes, request);
        return { ids: page.enrollmentCodes.map((code) => code.codeId), hasMore: page.hasMore };
      },
      async () => void (await fixture.ask(issueEnrollmentCode, { caller, deviceId })),
    );
    expect(seen).toEqual(before.toReversed());
  });

  test("a page without a limit: a hundred rows; the last page: no more rows", async () => {
    const { stations, hasMore } = await fixture.ask(listStations, { caller });
    expect([stations.length, hasMore]).toEqual([BOUNDS.listedUnlessAsked, true]);
    const all = await idsOf(
      fixture.sql`select station_id as id from stations where organization_id = ${caller.organizationId}`,
    );
    const last = { caller, sinceId: all.at(-3) ?? 0, limit: 2 };
    expect(await fixture.ask(listStations, last)).toMatchObject({ stations: [{}, {}], hasMore: false });
  });
});
