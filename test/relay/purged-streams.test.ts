/** A stream that an operator purges while the service runs: its sequence numbers continue, and the relay finds the loss. */
import { type TestContext, test } from "vitest";
import { COMPLETE_KEYS } from "../../services/bus/bucket-completeness.ts";
import { CREDENTIALS, SESSIONS, SWITCHES } from "../../services/bus/streams.ts";
import { BUCKET_OF_PART, isLogPurged } from "../../services/relay/recovery/check-streams.ts";
import type { AnnouncedPart } from "../../services/relay/sql/bus-state.ts";
import { ONE_LOG, STATION_LOG } from "../support/one-log.ts";
import { type RelayFixture, sessionHash, startRelayFixture } from "./relay-fixture.ts";

const WAIT = { timeout: 10_000, interval: 50 };

/** Tests run at the same time, so each has a separate fixture. */
async function fixtureOf({ onTestFinished }: TestContext): Promise<RelayFixture> {
  const fixture = await startRelayFixture();
  onTestFinished(() => fixture.stop());
  return fixture;
}

/** A person with a session, a station with a display, and a kill switch that is on. Returns the station's id. */
async function writeAll(fixture: RelayFixture): Promise<number> {
  const [row] = await fixture.sql<[{ station_id: number }]>`
    with o as (insert into organizations (name) values ('Organization') returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o returning *),
    u as (
      insert into users (organization_id, email, name, role, password_hash)
      select organization_id, 'ana@example.org', 'Ana', 'cashier', '' from o returning *),
    s as (
      insert into sessions (organization_id, user_id, token_hash, expires_at)
      select organization_id, user_id, decode(${sessionHash(1)}, 'hex'), now() + interval '1 hour' from u),
    k as (
      insert into kill_switches (
        subject_kind, subject_id, organization_id, is_on, reason, changed_by_kind, changed_by_id, changed_by_name, revision)
      select 'organization', organization_id, organization_id, true, 'A test', 'user', 1, 'Ana', 1 from o)
    insert into stations (organization_id, filial_id, name, currency, revision)
    select organization_id, filial_id, 'Counter', 'EUR', 4 from f returning station_id`;
  return row.station_id;
}

const messages = async ({ bus }: RelayFixture, stream: string): Promise<number> =>
  (await bus.jsm.streams.info(stream)).state.messages;

const isComplete = async (fixture: RelayFixture, part: AnnouncedPart): Promise<boolean> => {
  const bucket = BUCKET_OF_PART[part];
  if (bucket === null) throw new Error(`${part} has no bucket.`);
  return (await Promise.all(COMPLETE_KEYS.map((key) => fixture.newestOf(bucket, key)))).some((one) => one !== null);
};

const purge = ({ bus }: RelayFixture, stream: string) => bus.jsm.streams.purge(stream);

test.concurrent.for([
  ["sessions", SESSIONS],
  ["switches", SWITCHES],
  ["credentials", CREDENTIALS],
] as const)(
  "the bucket of %s is purged: the relay restores its entries before it writes the notice",
  async ([part, bucket], context) => {
    const { expect } = context;
    const fixture = await fixtureOf(context);
    await writeAll(fixture);
    await fixture.startAnnouncers();
    const relay = await fixture.startRelay();
    await expect.poll(() => isComplete(fixture, part), WAIT).toBe(true);
    const stream = `KV_${bucket.name}`;
    const before = await messages(fixture, stream);
    await purge(fixture, stream);
    await expect.poll(() => messages(fixture, stream), WAIT).toBe(before);

    // The next purge happens while no relay runs.
    await relay.stop();
    await purge(fixture, stream);
    await fixture.startRelay();
    await expect.poll(() => isComplete(fixture, part), WAIT).toBe(true);
    await expect.poll(() => messages(fixture, stream), WAIT).toBe(before);
  },
);

test.concurrent("the log of a station is purged: the relay describes the station again", async (context) => {
  const { expect } = context;
  const fixture = await fixtureOf(context);
  const stationId = await writeAll(fixture);
  await fixture.startStations();
  await fixture.startAnnouncers();
  await fixture.startRelay();
  const revision = async () => (await fixture.commits(stationId)).at(-1)?.state.revision;
  await expect.poll(revision, WAIT).toBe(4);
  const { sequence = 0 } = (await fixture.commits(stationId)).at(-1) ?? {};
  await fixture.sql`insert into audit_heads (station_id, version, stream_sequence) values (${stationId}, 1, ${sequence})`;
  await expect
    .poll(
      async () =>
        (await fixture.sql`select from bus_marks where stream = ${STATION_LOG.name} and sequence >= ${sequence}`)
          .length,
      WAIT,
    )
    .toBe(1);
  await purge(fixture, STATION_LOG.name);
  expect(await fixture.commits(stationId)).toEqual([]);
  await expect.poll(revision, WAIT).toBe(4);
});

test.concurrent("a log without a commit of its copied stations: purged; without such stations: not purged", async (context) => {
  const { expect } = context;
  const fixture = await fixtureOf(context);
  const { bus } = fixture;
  const isPurged = (...stationIds: number[]) => isLogPurged(bus.jsm, ONE_LOG, { stream: STATION_LOG.name, stationIds });
  // These are more commits than the log keeps, so it has dropped the first ones.
  for (let count = 0; count <= STATION_LOG.maxMessagesPerSubject; count += 1) {
    await bus.js.publish(ONE_LOG.subject(7), "a commit");
  }
  expect(await Promise.all([isPurged(7), isPurged(8, 7), isPurged()])).toEqual([false, false, false]);
  await purge(fixture, STATION_LOG.name);
  expect(await Promise.all([isPurged(7), isPurged()])).toEqual([true, false]);
});
