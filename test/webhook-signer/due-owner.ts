/** The rows of an owner with a delivery, for tests of single parts of the signer. */
import { randomBytes } from "node:crypto";
import type { Database } from "../../services/db/pool.ts";

/** Stores an owner with one delivery, due after `dueInMs`. With `lapsesInMs` it is an offer. Returns the owner's id. */
export async function addOwner(
  database: Database,
  url: string,
  { dueInMs = 0, lapsesInMs = null }: { readonly dueInMs?: number; readonly lapsesInMs?: number | null } = {},
): Promise<number> {
  const [row] = await database<[{ organization_id: number }]>`
    with o as (insert into organizations (name) values ('Organization') returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o
      returning organization_id, filial_id),
    c as (insert into robotics_consumers (organization_id, filial_id, name, mode, credential_hash)
      select organization_id, filial_id, 'Fleet', 'test', ${randomBytes(32)} from f
      returning organization_id, filial_id, consumer_id),
    e as (insert into webhook_endpoints (organization_id, consumer_id, filial_id, url)
      select organization_id, consumer_id, filial_id, ${url} from c
      returning organization_id, consumer_id, endpoint_id)
    insert into webhook_deliveries (organization_id, consumer_id, endpoint_id, event_type, body, status, due_at, lapses_at)
    select organization_id, consumer_id, endpoint_id, 'robotics.paused', '{}', 'pending',
      now() + ${dueInMs}::float8 * interval '1 millisecond', now() + ${lapsesInMs}::float8 * interval '1 millisecond'
    from e returning organization_id`;
  return row.organization_id;
}
