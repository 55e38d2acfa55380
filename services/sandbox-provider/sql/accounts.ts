import type { Queryable, Transaction } from "../../db/pool.ts";

export interface AccountRow {
  readonly account_id: string;
  readonly secret_generation: number;
  readonly has_previous_secret: boolean;
}

/** Any number; it only must differ from other advisory locks of ours. */
const ACCOUNTS_LOCK = 0xacc0;

/** Opens an account unless there are too many; false then. One at a time, so that the count holds. */
export async function insertAccount(
  sql: Transaction,
  account: { readonly accountId: string; readonly name: string; readonly apiKeyHash: Buffer; readonly most: number },
): Promise<boolean> {
  await sql`select pg_advisory_xact_lock(${ACCOUNTS_LOCK}, 0)`;
  const inserted = await sql`
    insert into sandbox_provider_accounts (account_id, name, api_key_hash)
    select ${account.accountId}, ${account.name}, ${account.apiKeyHash}
    where (select count(*) from sandbox_provider_accounts) < ${account.most}`;
  return inserted.count === 1;
}

const columns = (sql: Queryable) => sql`
  account_id, secret_generation, coalesce(previous_secret_until > now(), false) as has_previous_secret`;

export async function findAccountByKey(sql: Queryable, apiKeyHash: Buffer): Promise<AccountRow | undefined> {
  const [row] = await sql<AccountRow[]>`
    select ${columns(sql)} from sandbox_provider_accounts where api_key_hash = ${apiKeyHash}`;
  return row;
}

export async function findAccount(sql: Queryable, accountId: string): Promise<AccountRow | undefined> {
  const [row] = await sql<AccountRow[]>`
    select ${columns(sql)} from sandbox_provider_accounts where account_id = ${accountId}`;
  return row;
}

/** The next generation; the one before signs as well for `overlapMs`. */
export async function nextSecretGeneration(sql: Queryable, accountId: string, overlapMs: number): Promise<number> {
  const [row] = await sql<[{ secret_generation: number }]>`
    update sandbox_provider_accounts set secret_generation = secret_generation + 1,
      previous_secret_until = now() + ${overlapMs}::float8 * interval '1 ms'
    where account_id = ${accountId} returning secret_generation`;
  return row.secret_generation;
}

/** Draws the statement's next line. The account stays locked until the transaction ends, so lines have no gaps. */
export async function drawStatementLine(sql: Transaction, accountId: string): Promise<number> {
  const [row] = await sql<[{ statement_lines: number }]>`
    update sandbox_provider_accounts set statement_lines = statement_lines + 1
    where account_id = ${accountId} returning statement_lines`;
  return row.statement_lines;
}
