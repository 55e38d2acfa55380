/** The accounts of which statements are imported. Each query is confined to an organization. */
import type { StatementAccount } from "../../bus/messages/statement-accounts.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";

export interface AccountRow {
  readonly account_id: number;
  readonly filial_id: number | null;
  readonly provider: string;
  readonly reference: string;
  readonly name: string;
  readonly currency: string | null;
  readonly mode: StatementAccount["mode"];
  readonly config_id: number | null;
  readonly settlement_delay_days: number;
  readonly time_zone: string | null;
  readonly last_day: string | null;
  readonly created_at: Date;
}

const columns = (sql: Queryable) => sql`
  account_id, filial_id, provider, reference, name, currency, mode, config_id, settlement_delay_days, time_zone,
  last_day::text as last_day, created_at`;

interface AccountKey {
  readonly organizationId: number;
  readonly accountId: number;
}

export async function listStatementAccounts(
  sql: Queryable,
  page: { readonly organizationId: number; readonly sinceId: number; readonly limit: number },
): Promise<AccountRow[]> {
  return sql<AccountRow[]>`
    select ${columns(sql)} from statement_accounts where organization_id = ${page.organizationId} and account_id > ${page.sinceId}
    order by account_id limit ${page.limit}`;
}

export async function getStatementAccount(
  sql: Queryable,
  key: AccountKey,
  lock = sql``,
): Promise<AccountRow | undefined> {
  const [row] = await sql<AccountRow[]>`
    select ${columns(sql)} from statement_accounts where organization_id = ${key.organizationId} and account_id = ${key.accountId} ${lock}`;
  return row;
}

/** Locks the account until the transaction ends. Imports take the same lock, so that they are stored one after another. */
export const lockAccount = async (tx: Transaction, key: AccountKey): Promise<AccountRow | undefined> =>
  await getStatementAccount(tx, key, tx`for update`);

export async function countAccounts(sql: Queryable, organizationId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from statement_accounts where organization_id = ${organizationId}`;
  return row.count;
}

/** Whether lines may have been read with the account's currency and time zone. */
export async function hasImports(sql: Queryable, accountId: number): Promise<boolean> {
  const [row] = await sql<[{ has_imports: boolean }]>`
    select exists (
      select from statement_imports where account_id = ${accountId} and status not in ('refused', 'withdrawn')
    ) as has_imports`;
  return row.has_imports;
}

interface NewAccount {
  readonly organizationId: number;
  readonly filialId: number | undefined;
  readonly provider: string;
  readonly reference: string;
  readonly name: string;
  readonly currency: string | undefined;
  readonly mode: AccountRow["mode"];
  readonly configId: number | undefined;
  readonly settlementDelayDays: number | undefined;
  readonly timeZone: string | undefined;
}

/** Undefined when the organization has this account already, or another account is of the same config. */
export async function createStatementAccount(sql: Transaction, account: NewAccount): Promise<AccountRow | undefined> {
  const { organizationId, filialId = null, provider, reference, name, currency = null, mode } = account;
  const { configId = null, settlementDelayDays, timeZone = null } = account;
  const delay = settlementDelayDays === undefined ? sql`default` : sql`${settlementDelayDays}`;
  const [row] = await sql<AccountRow[]>`
    insert into statement_accounts (organization_id, filial_id, provider, reference, name, currency, mode, config_id,
      settlement_delay_days, time_zone)
    values (${organizationId}, ${filialId}, ${provider}, ${reference}, ${name}, ${currency}, ${mode}, ${configId},
      ${delay}, ${timeZone})
    on conflict do nothing returning ${columns(sql)}`;
  return row;
}

export async function changeStatementAccount(
  sql: Transaction,
  accountId: number,
  next: Pick<AccountRow, "name" | "filial_id" | "currency" | "settlement_delay_days" | "time_zone" | "last_day">,
): Promise<AccountRow> {
  const [row] = await sql<[AccountRow]>`
    update statement_accounts set name = ${next.name}, filial_id = ${next.filial_id}, currency = ${next.currency},
      settlement_delay_days = ${next.settlement_delay_days}, time_zone = ${next.time_zone},
      last_day = ${next.last_day}::date
    where account_id = ${accountId} returning ${columns(sql)}`;
  return row;
}

/** The account, and those whose statements may show the same payments or payouts. */
export async function listAccountsBeside(sql: Transaction, accountId: number): Promise<readonly number[]> {
  const rows = await sql<{ account_id: number }[]>`
    select ${accountId}::bigint as account_id
    union select account_id from accounts_beside(${accountId})
    union select account_id from banks_beside(${accountId})`;
  return rows.map((row) => row.account_id);
}

/** Whether the organization has this filial. */
export async function hasFilial(
  sql: Queryable,
  key: { readonly organizationId: number; readonly filialId: number },
): Promise<boolean> {
  const rows = await sql`
    select from filials where organization_id = ${key.organizationId} and filial_id = ${key.filialId}`;
  return rows.count === 1;
}

/** A provider config of the organization, to which an account may belong. */
export async function findAccountConfig(
  sql: Queryable,
  key: { readonly organizationId: number; readonly configId: number },
): Promise<{ readonly mode: AccountRow["mode"]; readonly filial_id: number } | undefined> {
  const [row] = await sql<{ mode: AccountRow["mode"]; filial_id: number }[]>`
    select mode, filial_id from provider_configs
    where organization_id = ${key.organizationId} and config_id = ${key.configId}`;
  return row;
}
