/** Which owners a process takes when more are free than it takes at once. */
import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import type { Database } from "../../services/db/pool.ts";
import { releaseOwners, takeOwners } from "../../services/webhook-signer/sql/owners.ts";
import { openClone } from "../support/open-clone.ts";

const OWNERS = 2_000;
let sql: Database;
/** The ids of all owners. Each owner has due deliveries. */
let owners: readonly number[];
beforeAll(async () => {
  const clone = await openClone({ maxConnections: 2 });
  sql = clone.sql;
  await sql`
    with o as (insert into organizations (name) select 'Organization' from generate_series(1, ${OWNERS}::int)
      returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o
      returning organization_id, filial_id),
    c as (insert into robotics_consumers (organization_id, filial_id, name, mode, credential_hash)
      select organization_id, filial_id, 'Fleet', 'test', sha256(filial_id::text::bytea) from f
      returning organization_id, filial_id, consumer_id),
    e as (insert into webhook_endpoints (organization_id, consumer_id, filial_id, url)
      select organization_id, consumer_id, filial_id, 'https://example.com/' from c
      returning organization_id, consumer_id, endpoint_id)
    insert into webhook_deliveries (organization_id, consumer_id, endpoint_id, event_type, body, status, due_at)
    select organization_id, consumer_id, endpoint_id, 'robotics.paused', '{}', 'pending', now() from e, generate_series(1, 5)`;
  // As in production: PostgreSQL has statistics of the table, and plans its query by them.
  await sql`analyze`;
  const rows = await sql<{ id: number }[]>`select organization_id as id from webhook_endpoints order by 1`;
  owners = rows.map(({ id }) => id);
  return clone.stop;
});

test("free owners: those with the smallest ids after the given id are taken, so that each owner gets its turn", async () => {
  const signerId = randomUUID();
  const take = async (afterId: number, except: readonly number[] = []): Promise<readonly number[]> =>
    (await takeOwners(sql, { signerId, leaseMs: 60_000, limit: 100, afterId, except })).toSorted((a, b) => a - b);
  const idAt = (at: number): number => owners[at] ?? 0;
  expect(await take(0)).toEqual(owners.slice(0, 100));
  expect(await take(0)).toEqual(owners.slice(100, 200));
  await releaseOwners(sql, { signerId, organizationIds: owners.slice(0, 10) });
  expect(await take(idAt(199))).toEqual(owners.slice(200, 300));
  expect(await take(idAt(1_949))).toEqual(owners.slice(1_950));
  expect(await take(0, owners.slice(0, 5))).toEqual([...owners.slice(5, 10), ...owners.slice(300, 395)]);
});

test("an owner whose endpoint, consumer or breaker prevents each delivery, or with nothing due: is not taken", async () => {
  const signerId = randomUUID();
  const take = async (): Promise<readonly number[]> =>
    (await takeOwners(sql, { signerId, leaseMs: 60_000, limit: 100, afterId: owners[999] ?? 0, except: [] })).toSorted(
      (a, b) => a - b,
    );
  const at = (index: number): number => owners[1_000 + index] ?? 0;
  await sql`update webhook_endpoints set status = 'paused' where organization_id = ${at(0)}`;
  await sql`update webhook_endpoints set status = 'disabled', disabled_reason = 'gone' where organization_id = ${at(1)}`;
  await sql`update webhook_endpoints set deleted_at = now() where organization_id = ${at(2)}`;
  await sql`update robotics_consumers set status = 'suspended' where organization_id = ${at(3)}`;
  await sql`update webhook_endpoints set open_until = now() + interval '1 minute' where organization_id = ${at(4)}`;
  await sql`update webhook_deliveries set due_at = now() + interval '1 minute' where organization_id = ${at(5)}`;
  await sql`update webhook_endpoints set open_until = now() - interval '1 second' where organization_id = ${at(6)}`;
  expect(await take()).toEqual(owners.slice(1_006, 1_106));
});
