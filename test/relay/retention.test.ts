/** How long outbox rows are kept. No relay runs here, so that rows stay as the test writes them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CREDENTIALS } from "../../services/bus/streams.ts";
import { credentialKey } from "../../services/db/outbox.ts";
import { deleteEntry } from "../../services/relay/buckets.ts";
import { RELAY_LIMITS } from "../../services/relay/limits.ts";
import { outboxRetention } from "../../services/relay/retention.ts";
import { createLog } from "../../services/runtime/log.ts";
import { removeExpired } from "../../services/runtime/retention.ts";
import { type RelayFixture, roboticsRow, sessionDelete, sessionPut, startRelayFixture } from "./relay-fixture.ts";

let fixture: RelayFixture;
beforeAll(async () => {
  fixture = await startRelayFixture();
});
afterAll(() => fixture.stop());
beforeEach(() => fixture.sql`truncate outbox`);

const HASH = "d".repeat(64);
const remove = () => removeExpired(outboxRetention(fixture), createLog({ service: "test", level: "silent" }));
const kinds = async () => (await fixture.sql`select kind from outbox order by outbox_id`).map((row) => row["kind"]);
const deliveredHoursAgo = (hours: number) => fixture.sql`
  update outbox set delivered_at = now() - ${hours}::float8 * interval '1 hour'`;

describe("an outbox row", () => {
  test("outstanding, however old: it is kept", async () => {
    await fixture.write(sessionPut(1, 1), { key: credentialKey(1), kind: "credential_delete", hash: HASH });
    await fixture.sql`update outbox set created_at = now() - interval '1 year'`;
    await remove();
    expect(await kinds()).toEqual(["session_put", "credential_delete"]);
  });

  test("delivered: it is deleted when its retention has ended", async () => {
    await fixture.write(sessionPut(1, 1));
    await deliveredHoursAgo(RELAY_LIMITS.deliveredRetentionHours - 1);
    await remove();
    expect(await kinds()).toEqual(["session_put"]);
    await deliveredHoursAgo(RELAY_LIMITS.deliveredRetentionHours + 1);
    await remove();
    expect(await kinds()).toEqual([]);
  });

  test("an event of robotics: kept until the webhook signer has taken it, however old it is", async () => {
    await fixture.write(roboticsRow(1, true), roboticsRow(1, false));
    await deliveredHoursAgo(RELAY_LIMITS.deliveredRetentionHours * 10);
    await remove();
    expect(await kinds()).toEqual(["robotics_event", "robotics_event"]);
    await fixture.sql`
      insert into webhook_events (event_id, organization_id, filial_id, event_type)
      select min(outbox_id), 1, 1, 'robotics.paused' from outbox`;
    await remove();
    const left = await fixture.sql`select payload #>> '{event,eventType}' as type from outbox`;
    expect(left).toEqual([{ type: "robotics.resumed" }]);
  });

  test("failed, or a deletion of a credential: kept longer, and then deleted with the marker in the bucket", async () => {
    await fixture.write(sessionDelete(1, 1), { key: credentialKey(1), kind: "credential_delete", hash: HASH });
    await deleteEntry(fixture.bus, CREDENTIALS, HASH);
    const marker = () => fixture.newestOf(CREDENTIALS, HASH);
    await deliveredHoursAgo(RELAY_LIMITS.markedRetentionHours - 1);
    await fixture.sql`update outbox set failed_reason = 'station_unknown' where kind = 'session_delete'`;
    await remove();
    expect(await kinds()).toEqual(["session_delete", "credential_delete"]);
    expect(await marker()).not.toBeNull();
    await deliveredHoursAgo(RELAY_LIMITS.markedRetentionHours + 1);
    await remove();
    expect(await kinds()).toEqual([]);
    expect(await marker()).toBeNull();
  });

  test("one of more rows than a batch: all are deleted", async () => {
    await fixture.sql`
      insert into outbox (key, kind, payload, delivered_at)
      select 'session.1', 'session_put', '{}', now() - interval '2 days'
      from generate_series(1, ${RELAY_LIMITS.retention.rowsPerBatch * 2 + 1})`;
    await remove();
    expect(await kinds()).toEqual([]);
  });
});
