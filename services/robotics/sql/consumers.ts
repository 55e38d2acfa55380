/** Consumers. Each operation is limited to one organization, except for the check of a credential. */
import type { CONSUMER_MODES, CONSUMER_STATUSES } from "../../bus/messages/consumers.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";

export interface ConsumerRow {
  readonly consumer_id: number;
  readonly organization_id: number;
  readonly filial_id: number;
  readonly name: string;
  readonly mode: (typeof CONSUMER_MODES)[number];
  readonly status: (typeof CONSUMER_STATUSES)[number];
  readonly created_at: Date;
}

interface ConsumerKey {
  readonly organizationId: number;
  readonly consumerId: number;
}

/** All but the credential's hash, which is compared in SQL only. */
const columns = (sql: Queryable) => sql`consumer_id, organization_id, filial_id, name, mode, status, created_at`;

export async function findConsumer(sql: Queryable, key: ConsumerKey, lock = sql``): Promise<ConsumerRow | undefined> {
  const [row] = await sql<ConsumerRow[]>`
    select ${columns(sql)} from robotics_consumers
    where organization_id = ${key.organizationId} and consumer_id = ${key.consumerId} ${lock}`;
  return row;
}

/** The consumer with this credential, suspended or not. */
export async function authenticateConsumer(sql: Queryable, credentialHash: Buffer): Promise<ConsumerRow | undefined> {
  const [row] = await sql<ConsumerRow[]>`
    select ${columns(sql)} from robotics_consumers where credential_hash = ${credentialHash}`;
  return row;
}

/** The consumer, locked for share: it is not suspended or changed until the transaction ends. */
export const holdConsumer = async (tx: Transaction, key: ConsumerKey): Promise<ConsumerRow | undefined> =>
  await findConsumer(tx, key, tx`for share`);

/** The consumer, locked for a change; waits for transactions that hold it. */
export const lockConsumer = async (tx: Transaction, key: ConsumerKey): Promise<ConsumerRow | undefined> =>
  await findConsumer(tx, key, tx`for update`);

export async function listRoboticsConsumers(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly filialId: number | undefined;
    readonly sinceId: number;
    readonly limit: number;
  },
): Promise<ConsumerRow[]> {
  const ofFilial = page.filialId === undefined ? sql`` : sql`and filial_id = ${page.filialId}`;
  return sql<ConsumerRow[]>`
    select ${columns(sql)} from robotics_consumers
    where organization_id = ${page.organizationId} and consumer_id > ${page.sinceId} ${ofFilial}
    order by consumer_id limit ${page.limit}`;
}

export async function countConsumers(sql: Queryable, filialId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from robotics_consumers where filial_id = ${filialId}`;
  return row.count;
}

export async function createRoboticsConsumer(
  sql: Transaction,
  consumer: {
    readonly organizationId: number;
    readonly filialId: number;
    readonly name: string;
    readonly mode: ConsumerRow["mode"];
    readonly credentialHash: Buffer;
  },
): Promise<ConsumerRow> {
  const { organizationId, filialId, name, mode, credentialHash } = consumer;
  const [row] = await sql<[ConsumerRow]>`
    insert into robotics_consumers (organization_id, filial_id, name, mode, credential_hash)
    values (${organizationId}, ${filialId}, ${name}, ${mode}, ${credentialHash}) returning ${columns(sql)}`;
  return row;
}

export async function changeRoboticsConsumer(
  sql: Transaction,
  consumerId: number,
  next: Pick<ConsumerRow, "name" | "status">,
): Promise<ConsumerRow> {
  const [row] = await sql<[ConsumerRow]>`
    update robotics_consumers set name = ${next.name}, status = ${next.status}
    where consumer_id = ${consumerId} returning ${columns(sql)}`;
  return row;
}

/** From here on only the new credential counts. Returns whether it is another than before. */
export async function resetRoboticsCredential(
  sql: Transaction,
  consumerId: number,
  credentialHash: Buffer,
): Promise<boolean> {
  const changed = await sql`
    update robotics_consumers set credential_hash = ${credentialHash}, credential_created_at = now()
    where consumer_id = ${consumerId} and credential_hash <> ${credentialHash}`;
  return changed.count > 0;
}

/** The filial's oldest consumer for tests of that name. */
export async function findTestConsumer(
  sql: Queryable,
  { filialId, name }: { readonly filialId: number; readonly name: string },
): Promise<ConsumerRow | undefined> {
  const [row] = await sql<ConsumerRow[]>`
    select ${columns(sql)} from robotics_consumers
    where filial_id = ${filialId} and mode = 'test' and name = ${name} order by consumer_id limit 1`;
  return row;
}
