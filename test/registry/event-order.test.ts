/** A reader can follow the audit log by ids: no event gets a smaller id than an event that was already readable. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { OPERATOR } from "../../services/bus/messages/caller.ts";
import { changeDevice } from "../../services/bus/messages/devices.ts";
import { issueEnrollmentCode } from "../../services/bus/messages/enrollment-codes.ts";
import { listEvents } from "../../services/bus/messages/events.ts";
import { createFilial, listFilials } from "../../services/bus/messages/filials.ts";
import { createOrganization } from "../../services/bus/messages/organizations.ts";
import { seedSandbox } from "../../services/bus/messages/sandbox-organization.ts";
import * as sessions from "../../services/bus/messages/sessions.ts";
import { renameStation } from "../../services/bus/messages/stations.ts";
import { recordEvent } from "../../services/registry/sql/events.ts";
import { CASHIER_PASSWORD, newDevice, newStation, type RegistryFixture, startRegistry } from "./registry-fixture.ts";

let fixture: RegistryFixture;
beforeAll(async () => {
  fixture = await startRegistry();
});
afterAll(() => fixture.stop());

const eventIds = async (): Promise<number[]> =>
  (await fixture.sql<{ event_id: number }[]>`select event_id from registry_events order by event_id`).map(
    (row) => row.event_id,
  );

test("a reader that continues after its last id, during changes of all kinds: gets each event once", async () => {
  const caller = fixture.owner;
  const station = await newStation(fixture);
  const { stationId } = station;
  const { deviceId } = await newDevice(fixture, stationId);
  const work = [
    (round: number) => fixture.ask(renameStation, { caller, stationId, name: `Name ${round}` }),
    (round: number) => fixture.ask(changeDevice, { caller, deviceId, name: `Name ${round}` }),
    () => fixture.ask(issueEnrollmentCode, { caller, deviceId }),
    () => fixture.ask(createFilial, { caller, name: "Filial" }),
    () =>
      fixture.ask(sessions.logIn, {
        email: "cashier@sandbox.example",
        password: CASHIER_PASSWORD,
        address: "192.0.2.1",
        permission: "payments.collect",
      }),
    () => fixture.ask(seedSandbox, { ownerPassword: "owner of the sandbox", cashierPassword: CASHIER_PASSWORD }),
  ];
  let isWorking = true;
  const workers = Promise.all(
    work.map(async (act) => {
      for (let round = 0; round < 8; round += 1) await act(round);
    }),
  ).finally(() => {
    isWorking = false;
  });
  const seen: number[] = [];
  for (let isLast = false; !isLast; ) {
    isLast = !isWorking;
    const { events } = await fixture.ask(listEvents, {
      caller,
      sinceId: seen.at(-1) ?? 0,
      limit: 500,
    });
    seen.push(...events.map((event) => event.eventId));
  }
  await workers;
  expect(seen).toEqual(await eventIds());
});

test("an event that is not committed: later events of its organization wait for it, those of others do not", async () => {
  const { filials } = await fixture.ask(listFilials, { caller: fixture.owner });
  const elsewhere = await fixture.ask(createOrganization, {
    name: "Elsewhere",
    owner: { email: "o@elsewhere.example", name: "O", password: "a long password" },
  });
  const stranger = {
    ...fixture.owner,
    organizationId: elsewhere.organization.organizationId,
    userId: elsewhere.owner.userId,
  };
  let isAnswered = false;
  let created: Promise<unknown> = Promise.resolve();
  await fixture.sql.begin(async (tx) => {
    const { organizationId } = fixture.owner;
    const subject = { kind: "filial", id: filials[0]?.filialId ?? 0 } as const;
    await recordEvent(tx, { organizationId, actor: OPERATOR, action: "slow_change", subject });
    created = fixture.ask(createFilial, { caller: fixture.owner, name: "Later" }).finally(() => {
      isAnswered = true;
    });
    await fixture.ask(createFilial, { caller: stranger, name: "Theirs" });
    const waits = async () =>
      (
        await fixture.sql`
        select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`
      ).length > 0;
    await vi.waitUntil(async () => isAnswered || (await waits()), { timeout: 10_000, interval: 10 });
    expect(isAnswered).toBe(false);
  });
  await created;
  const events = await fixture.sql<{ action: string }[]>`
    select action from registry_events where organization_id = ${fixture.owner.organizationId}
    order by event_id desc limit 2`;
  expect(events.map((event) => event.action)).toEqual(["filial_created", "slow_change"]);
});
