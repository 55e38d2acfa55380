/** A database with an organization, its stations and statement accounts. Short functions settle payments and import lines. */
import { createHash } from "node:crypto";
import { closeDatabase, type Database, openDatabase } from "../../../services/db/pool.ts";
import { raiseIssues } from "../../../services/issues/sql/raise.ts";
import type { LineKind } from "../../../services/reconciliation/formats/format.ts";
import { runReconciliation } from "../../../services/reconciliation/matching.ts";
import { HOLDS_LOCKS } from "../../support/held-locks.ts";
import { cloneDatabase } from "../../support/servers.ts";

export interface Payment {
  readonly route?: "dynamic_qr" | "attested_terminal" | "smart_pos" | "cash";
  /** The provider's reference, or the cashier's. */
  readonly reference: string;
  readonly amountMinor?: number;
  readonly currency?: string;
  readonly day?: string;
  /** Noon (UTC) of the day when left out. */
  readonly at?: string;
  readonly station?: number;
}

export interface Line {
  /** Names the line in the results. */
  readonly name: string;
  readonly kind?: LineKind;
  readonly amountMinor?: number;
  readonly currency?: string;
  readonly feeMinor?: number;
  readonly netMinor?: number;
  readonly tipMinor?: number;
  readonly day?: string;
  readonly occurredAt?: string;
  readonly providerReference?: string;
  readonly paymentReference?: string;
  readonly merchantReference?: string;
  readonly payoutReference?: string;
  readonly terminal?: string;
  readonly text?: string;
}

/** A line with the provider's reference of a payment of that name. */
export const lineOf = (name: string, amountMinor: number, more: Partial<Line> = {}): Line => ({
  name,
  amountMinor,
  providerReference: name,
  ...more,
});

export interface RunOutcome {
  readonly runId: number;
  /** By the name of the line: `matched`, the kind of its difference, or `rejected: <reason>`. */
  readonly lines: Readonly<Record<string, string>>;
  /** The kinds of all differences, sorted. */
  readonly kinds: readonly string[];
  readonly resultHash: string;
}

export interface FileDays {
  readonly from: string;
  readonly to: string;
}

export interface RunWorld {
  readonly database: Database;
  readonly organizationId: number;
  readonly filialId: number;
  readonly stationId: number;
  readonly secondStationId: number;
  /** A station of another filial. */
  readonly otherStationId: number;
  readonly configId: number;
  /** The account of QR payments. */
  readonly qrAccountId: number;
  /** The account of terminals, which has no provider config. */
  readonly terminalAccountId: number;
  /** Returns the key of the payment. */
  pay(payment: Payment): Promise<string>;
  /** Stores a device's report of a success, for a collection of 10.00 that had ended before. */
  reportLate(reference: string): Promise<void>;
  /** Imports one file; its days are those of March unless it names others. A line that the account has already is not added. */
  importLines(accountId: number, lines: readonly Line[], days?: FileDays): Promise<number>;
  /** Withdraws all files of the account, with their lines. */
  withdraw(accountId: number): Promise<void>;
  addAccount(provider: string): Promise<number>;
  run(accountId: number, days?: { readonly from?: string; readonly to?: string }): Promise<RunOutcome>;
}

/** Days of the statements in these tests. */
export const FIRST_DAY = "2026-03-01";
export const LAST_DAY = "2026-03-31";
export const DAY = "2026-03-10";

export interface RunDatabase {
  readonly database: Database;
  /** Creates an organization; the other ones of the database stay unchanged. */
  openWorld(): Promise<RunWorld>;
  stop(): Promise<void>;
}

export async function startRunDatabase(): Promise<RunDatabase> {
  const testDatabase = await cloneDatabase();
  const database = openDatabase({ ...HOLDS_LOCKS, url: testDatabase.url });
  return {
    database,
    openWorld: () => openWorld(database),
    async stop() {
      await closeDatabase(database);
      await testDatabase.drop();
    },
  };
}

/** The name of each line, by its fingerprint. */
const names = new Map<string, string>();
let intents = 1_000;
let files = 0;

async function openWorld(sql: Database): Promise<RunWorld> {
  const [place] = await sql<
    {
      organization_id: number;
      filial_id: number;
      station_id: number;
      second_station_id: number;
      other_station_id: number;
      config_id: number;
    }[]
  >`
    with o as (insert into organizations (name) values ('Organization') returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Centre' from o returning *),
    g as (insert into filials (organization_id, name) select organization_id, 'Harbour' from o returning *),
    s as (insert into stations (organization_id, filial_id, name, currency)
      select organization_id, filial_id, 'Counter', 'EUR' from f returning *),
    s2 as (insert into stations (organization_id, filial_id, name, currency)
      select organization_id, filial_id, 'Terrace', 'EUR' from f returning *),
    t as (insert into stations (organization_id, filial_id, name, currency)
      select organization_id, filial_id, 'Counter', 'EUR' from g returning *),
    c as (insert into provider_configs (organization_id, filial_id, kind, mode, name, settings)
      select organization_id, filial_id, 'emvco_generic', 'live', 'QR', '{}' from f returning *)
    select o.organization_id, f.filial_id, s.station_id, s2.station_id as second_station_id, t.station_id as other_station_id,
      c.config_id
    from o, f, s, s2, t, c`;
  if (place === undefined) throw new Error("There is no organization.");
  const { organization_id: organizationId, filial_id: filialId, station_id: stationId, config_id: configId } = place;
  const addAccount = async (provider: string, config: number | null = null): Promise<number> => {
    const [account] = await sql<{ account_id: number }[]>`
      insert into statement_accounts (organization_id, filial_id, provider, reference, name, currency, mode, config_id)
      values (${organizationId}, ${filialId}, ${provider}, 'M-1', 'Account', null, 'live', ${config}) returning account_id`;
    return account?.account_id ?? 0;
  };
  const qrAccountId = await addAccount("qr", configId);
  const terminalAccountId = await addAccount("terminal");
  return {
    database: sql,
    organizationId,
    filialId,
    stationId,
    secondStationId: place.second_station_id,
    otherStationId: place.other_station_id,
    configId,
    qrAccountId,
    terminalAccountId,
    addAccount: (provider) => addAccount(provider),
    pay: (payment) => settle(sql, { organizationId, stationId, configId }, payment),
    reportLate: (reference) => reportLate(sql, { organizationId, stationId }, reference),
    importLines: (accountId, lines, days) => importLines(sql, { organizationId, accountId }, lines, days),
    withdraw: (accountId) => withdraw(sql, accountId),
    run: (accountId, { from = FIRST_DAY, to = LAST_DAY } = {}) =>
      runAndRead(sql, { organizationId, accountId, fromDate: from, toDate: to, startedBy: 7 }),
  };
}

/** The merchant's reference of a QR payment. */
export const ourReference = (organizationId: number, reference: string): string =>
  `ours-${organizationId}-${reference}`;

async function settle(
  sql: Database,
  place: { readonly organizationId: number; readonly stationId: number; readonly configId: number },
  payment: Payment,
): Promise<string> {
  const { route = "dynamic_qr", reference, amountMinor = 1250, currency = "EUR", day = DAY } = payment;
  const { station = place.stationId, at = `${day}T12:00:00Z` } = payment;
  const intentId = (intents += 1);
  if (route === "dynamic_qr") {
    await sql`
      insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference, account,
        amount_minor, currency, expires_at, asked_until, paid_reference, paid_at)
      values (${intentId}, ${place.configId}, ${place.organizationId}, ${station}, ${intentId}, ${ourReference(place.organizationId, reference)}, 'M-1',
        ${amountMinor}, ${currency}, ${at}, ${at}, ${reference}, ${at})`;
  }
  const [row] = await sql<{ transaction_id: number }[]>`
    with o as (
      insert into orders (organization_id, station_id, display_number, status, currency, total_minor, opened_by)
      values (${place.organizationId}, ${station}, ${intentId}, 'paid', ${currency}, ${amountMinor}, 7) returning order_id
    )
    insert into transactions (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference,
      attested_by, settled_at)
    select ${place.organizationId}, order_id, ${station}, ${intentId}, ${route}, ${amountMinor}, ${currency}, ${reference}, 7, ${at}
    from o returning transaction_id`;
  return `transaction:${row?.transaction_id ?? 0}`;
}

async function reportLate(
  sql: Database,
  { organizationId, stationId }: { readonly organizationId: number; readonly stationId: number },
  reference: string,
): Promise<void> {
  const intentId = (intents += 1);
  const data = sql.json({ outcome: "reported_success", providerReference: reference });
  await sql`
    with o as (
      insert into orders (organization_id, station_id, display_number, currency, total_minor, opened_by)
      values (${organizationId}, ${stationId}, ${intentId}, 'EUR', 1000, 7) returning order_id
    ),
    p as (
      insert into payments (intent_id, organization_id, filial_id, station_id, sandbox, version, route, status, amount_minor, currency,
        order_id, order_display_number, created_at)
      select ${intentId}::bigint, s.organization_id, s.filial_id, s.station_id, s.sandbox, 1, 'smart_pos', 'expired', 1000, 'EUR',
        o.order_id, ${intentId}, '2026-03-10T11:00:00Z' from o, stations s where s.station_id = ${stationId}
    )
    insert into station_events (station_id, version, ordinal, organization_id, intent_id, at, type, actor_kind, actor_id,
      actor_name, data, machine_version, stream_sequence)
    values (${stationId}, 1, 0, ${organizationId}, ${intentId}, '2026-03-10T12:00:00Z', 'late_evidence_kept', 'device', 1,
      'Reader', ${data}, 1, 1)`;
}

async function importLines(
  sql: Database,
  { organizationId, accountId }: { readonly organizationId: number; readonly accountId: number },
  lines: readonly Line[],
  days: FileDays = { from: FIRST_DAY, to: LAST_DAY },
): Promise<number> {
  const sha256 = createHash("sha256")
    .update(`file ${(files += 1)}`)
    .digest();
  const [file] = await sql<{ import_id: number }[]>`
    insert into statement_imports (organization_id, account_id, sha256, file_name, size_bytes, format, format_version, encoding,
      status, uploaded_by, from_date, to_date)
    values (${organizationId}, ${accountId}, ${sha256}, 'a.csv', 1, 'csv', 1, 'utf-8', 'importing', 7, ${days.from}, ${days.to})
    returning import_id`;
  const importId = file?.import_id ?? 0;
  for (const [index, line] of lines.entries()) {
    const { name, kind = "payment", amountMinor = 1250, currency = "EUR", day = DAY } = line;
    const fingerprint = createHash("sha256").update(name).digest();
    names.set(fingerprint.toString("hex"), name);
    await sql`
      with l as (
        insert into statement_lines (organization_id, account_id, fingerprint, fingerprint_version, kind, provider_type,
          amount_minor, currency, fee_minor, net_minor, tip_minor, booked_on, occurred_at, provider_reference,
          payment_reference, merchant_reference, payout_reference, terminal, account, text, details)
        values (${organizationId}, ${accountId}, ${fingerprint}, 1, ${kind}, ${kind}, ${amountMinor}, ${currency},
          ${line.feeMinor ?? null}, ${line.netMinor ?? null}, ${line.tipMinor ?? null}, ${day}, ${line.occurredAt ?? null},
          ${line.providerReference ?? ""}, ${line.paymentReference ?? ""}, ${line.merchantReference ?? ""}, ${line.payoutReference ?? ""},
          ${line.terminal ?? ""}, '', ${line.text ?? ""}, '{}')
        on conflict (account_id, fingerprint) do update set text = excluded.text
        returning line_id
      )
      insert into statement_line_sources (import_id, position, line_id) select ${importId}, ${index + 1}, line_id from l`;
  }
  await sql`update statement_imports set status = 'imported', ended_at = now() where import_id = ${importId}`;
  return importId;
}

async function withdraw(sql: Database, accountId: number): Promise<void> {
  await sql`
    delete from statement_line_sources where import_id in (select import_id from statement_imports where account_id = ${accountId})`;
  await sql`
    delete from statement_malformed where import_id in (select import_id from statement_imports where account_id = ${accountId})`;
  await sql`delete from statement_lines where account_id = ${accountId}`;
  await sql`
    update statement_imports set status = 'withdrawn', withdrawn_by = 7, withdrawn_at = now(), withdrawal_reason = 'Wrong file.'
    where account_id = ${accountId}`;
}

async function runAndRead(sql: Database, request: Parameters<typeof runReconciliation>[1]): Promise<RunOutcome> {
  const runId = await runReconciliation({ database: sql, longDatabase: sql }, request);
  const rows = await sql<{ fingerprint: string; outcome: string | null; reason: string | null; is_matched: boolean }[]>`
    select encode(l.fingerprint, 'hex') as fingerprint, o.outcome, o.reason, m.line_id is not null as is_matched
    from statement_lines l left join line_outcomes o using (line_id) left join match_lines m using (line_id)
    where l.account_id = ${request.accountId} order by 1`;
  const kinds = await sql<{ kind: string }[]>`select kind from run_differences where run_id = ${runId} order by kind`;
  const [run] = await sql<{ hash: string }[]>`
    select encode(result_hash, 'hex') as hash from reconciliation_runs where run_id = ${runId}`;
  return {
    runId,
    lines: Object.fromEntries(rows.map((row) => [names.get(row.fingerprint) ?? "", wordOf(row)])),
    kinds: kinds.map(({ kind }) => kind),
    resultHash: run?.hash ?? "",
  };
}

function wordOf(row: {
  readonly outcome: string | null;
  readonly reason: string | null;
  readonly is_matched: boolean;
}) {
  if (row.is_matched) return row.outcome === null ? "matched" : `matched and ${row.outcome}`;
  if (row.outcome === null) return "open";
  return row.outcome === "rejected" ? `rejected: ${row.reason}` : (row.reason ?? "");
}

/** Raises an issue of a day in March, as a callback does (services/providers/sql/issues.ts). */
export async function raiseOfCallback(
  world: RunWorld,
  { kind, reference, amountMinor }: { readonly kind: string; readonly reference: string; readonly amountMinor: number },
): Promise<number> {
  const { database, organizationId, configId, stationId } = world;
  const station = kind === "unmatched_money" ? null : stationId;
  const [raised] = await database.begin((tx) =>
    raiseIssues(
      tx,
      tx`
        select ${organizationId}::bigint, ${`provider:${configId}`}::text, ${station}::bigint, ${kind}::text, ${`money:${reference}`}::text,
          'paid', 'payment', ${amountMinor}::bigint, 'EUR', 'provider', ${configId}::bigint, null::bigint, null::bigint, null::bigint,
          ${reference}::text, '{}'::jsonb, true, 'M-1', null::bigint`,
    ),
  );
  const issueId = raised?.issueId ?? 0;
  await database`update issues set opened_at = '2026-03-10T12:00:00Z' where issue_id = ${issueId}`;
  return issueId;
}
