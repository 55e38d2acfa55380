/** Writes the lines of a file into the tables while it is read: by COPY, a bounded batch at a time, in one transaction. */
import { once } from "node:events";
import type { Writable } from "node:stream";
import { isLockTimeout } from "../../db/lock-timeout.ts";
import type { Transaction } from "../../db/pool.ts";
import { storedText } from "../../db/stored-text.ts";
import type { StatementLine } from "../formats/format.ts";
import { IDENTITY_VERSION } from "../line-identity.ts";

/** Where the lines belong. */
export interface LineOwner {
  readonly importId: number;
  readonly organizationId: number;
  readonly accountId: number;
}

/** A line that the account has. */
export interface KnownLine {
  readonly line_id: number;
  readonly amount_minor: string;
  readonly currency: string;
  readonly payout_reference: string;
  /** Whether a later file has added its payout. */
  readonly has_added_payout: boolean;
}

/** The columns of a line, in the order of `fieldsOf`. */
const FIELDS = `kind, provider_type, amount_minor, currency, fee_minor, net_minor, tip_minor, booked_on, value_on, occurred_at,
  provider_reference, payment_reference, merchant_reference, payout_reference, terminal, account, text, details`;

/** The fields of a line in COPY's text format, without the line's end: for the table of lines and for that of undecided lines. */
export function fieldsOf(line: StatementLine): string {
  return [
    line.kind,
    field(line.providerType),
    line.amountMinor,
    line.currency,
    line.feeMinor ?? NULL,
    line.netMinor ?? NULL,
    line.tipMinor ?? NULL,
    line.bookedOn,
    line.valueOn ?? NULL,
    line.occurredAt ?? NULL,
    field(line.providerReference),
    field(line.paymentReference),
    field(line.merchantReference),
    field(line.payoutReference),
    field(line.terminal),
    field(line.account),
    field(line.text),
    field(JSON.stringify(line.details)),
  ].join("\t");
}

const NULL = "\\N";
const ESCAPED = /[\\\t\n\r]/;
const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/** Verbatim text, with what PostgreSQL cannot store replaced by its marks (`stored-text.ts`). */
function field(text: string): string {
  if (text === "") return text;
  const stored = storedText(text);
  return ESCAPED.test(stored) ? stored.replaceAll(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? "") : stored;
}

const bytes = (hex: string): string => `\\\\x${hex}`;

/** A line that is new, with the first ordinal of its identity. */
export const lineRow = (
  { organizationId, accountId }: LineOwner,
  line: { readonly lineId: number; readonly fingerprint: string; readonly fields: string },
): string =>
  `${line.lineId}\t${organizationId}\t${accountId}\t${bytes(line.fingerprint)}\t${IDENTITY_VERSION}\t0\t${line.fields}`;

export const sourceRow = ({ importId }: LineOwner, position: number, lineId: number): string =>
  `${importId}\t${position}\t${lineId}`;

/** `hasSource`: it is stored as a source of the known line already; `decideUndecided` removes that if the identity repeats. */
export const undecidedRow = (line: {
  readonly position: number;
  readonly identity: string;
  readonly hasSource: boolean;
  readonly fields: string;
}): string => `${line.position}\t${bytes(line.identity)}\t${line.hasSource ? "t" : "f"}\t${line.fields}`;

/**
 * Waits up to `waitMs` for the account: imports of one account are stored one after another, so that each sees the lines of those
 * before it. False when another import still has it.
 */
export async function lockAccountOfImport(
  sql: Transaction,
  { accountId, waitMs, hungMs }: { readonly accountId: number; readonly waitMs: number; readonly hungMs: number },
): Promise<boolean> {
  try {
    await sql.savepoint(async (tx) => {
      // A process that hangs while it has the account must not block the process that takes over its import.
      await tx`select set_config('lock_timeout', ${String(waitMs)}, true),
        set_config('idle_in_transaction_session_timeout', ${String(hungMs)}, true)`;
      await tx`select from statement_accounts where account_id = ${accountId} for no key update`;
    });
    return true;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}

/** For the rest of the transaction: allows only index searches, as `findLines` needs them, or what the planner chooses. */
export async function searchByIndex(sql: Transaction, isOnly: boolean): Promise<void> {
  const sorts = isOnly ? "off" : "on";
  await sql`select set_config('enable_sort', ${sorts}, true), set_config('enable_incremental_sort', ${sorts}, true)`;
}

/** Creates the table of lines that are decided when the whole file is read. */
export async function createUndecided(sql: Transaction): Promise<void> {
  await sql.unsafe(`
    create temporary table import_undecided on commit drop as
      select 0::bigint as position, fingerprint as identity, false as has_source, ${FIELDS} from statement_lines limit 0`);
}

/**
 * The account's lines with these fingerprints (hex), by fingerprint. Row comparisons, the order, and no sort (`searchByIndex`)
 * leave one plan, a search of the unique index for each: a planner that does not know how many lines the account has by now
 * would read all of them each time.
 */
export async function findLines(
  sql: Transaction,
  accountId: number,
  fingerprints: readonly string[],
): Promise<ReadonlyMap<string, KnownLine>> {
  const array = `{${fingerprints.map((hex) => `"\\\\x${hex}"`).join(",")}}`;
  const rows = await sql<(KnownLine & { fingerprint: string })[]>`
    select encode(f.fingerprint, 'hex') as fingerprint, l.line_id, l.amount_minor::text as amount_minor, l.currency,
      l.payout_reference, l.payout_import_id is not null as has_added_payout
    from unnest(${array}::text::bytea[]) as f (fingerprint) cross join lateral (
      select * from statement_lines l
      where (l.account_id, l.fingerprint) >= (${accountId}, f.fingerprint) and (l.account_id, l.fingerprint) <= (${accountId}, f.fingerprint)
      order by l.account_id, l.fingerprint limit 1) l`;
  return new Map(rows.map((row) => [row.fingerprint, row]));
}

/** The payout of a line that earlier files have brought. */
export interface NamedPayout {
  readonly lineId: number;
  readonly payoutReference: string;
}

/**
 * Adds the payouts to lines that have none, because an export before the payout does not name it, or one that a withdrawn file
 * has added. A line of a closed period stays as it is. The transaction has the account, so no period is closed meanwhile.
 */
export async function addPayouts(
  sql: Transaction,
  { accountId, importId }: LineOwner,
  payouts: readonly NamedPayout[],
): Promise<void> {
  await sql`
    update statement_lines l set payout_reference = p.reference, payout_import_id = ${importId}
    from unnest(${payouts.map(({ lineId }) => lineId)}::bigint[], ${payouts.map((payout) => storedText(payout.payoutReference))}::text[])
      as p (line_id, reference)
    where l.line_id = p.line_id
      and (l.payout_reference = '' or exists (
        select from statement_imports i where i.import_id = l.payout_import_id and i.status in ('withdrawing', 'withdrawn')))
      and not exists (
      select from period_closings c where c.account_id = ${accountId} and l.booked_on between c.from_date and c.to_date
        and l.line_id <= c.through_line_id)`;
}

/** Takes `count` line ids, in rising order; each is greater than those of all lines that the account has had. */
export async function takeLineIds(sql: Transaction, count: number): Promise<number[]> {
  const [row] = await sql<[{ ids: string }]>`
    select string_agg(nextval('statement_lines_line_id_seq'::regclass)::text, ' ') as ids
    from generate_series(1, ${count}::int)`;
  return row.ids.split(" ").map(Number);
}

const COPIES = {
  lines: `copy statement_lines (line_id, organization_id, account_id, fingerprint, fingerprint_version, ordinal, ${FIELDS}) from stdin`,
  sources: "copy statement_line_sources (import_id, position, line_id) from stdin",
  undecided: `copy import_undecided (position, identity, has_source, ${FIELDS}) from stdin`,
} as const;

/** Appends rows of `lineRow`, `sourceRow` or `undecidedRow`. */
export async function copyRows(sql: Transaction, to: keyof typeof COPIES, rows: readonly string[]): Promise<void> {
  if (rows.length === 0) return;
  const stream: Writable = await sql.unsafe(COPIES[to]).writable();
  const finished = once(stream, "finish");
  stream.end(`${rows.join("\n")}\n`);
  await finished;
}

/**
 * Decides the undecided lines. Lines of one identity get their ordinals by amount, day and position. A line that the account
 * has with another amount or currency is not stored, but listed with the malformed rows: an operator decides which file is
 * right. Its `raw` has the amount, because another file may contradict the same line with another one. Lines from `firstLineId`
 * on are of this file. Returns by how much the counts of lines and of sources change.
 */
export async function decideUndecided(
  sql: Transaction,
  owner: LineOwner,
  firstLineId: number,
): Promise<{ readonly lines: number; readonly sources: number }> {
  const { importId, organizationId, accountId } = owner;
  await sql`
    create temporary table import_repeated on commit drop as
      select identity, line_fingerprint(identity, 0) as fingerprint from import_undecided
      group by identity having count(*) > 1 or not bool_and(has_source)`;
  await sql`analyze import_repeated`;
  const [repeated] = await sql`select from import_repeated limit 1`;
  if (repeated === undefined) {
    await sql`drop table import_undecided, import_repeated`;
    return { lines: 0, sources: 0 };
  }
  await sql`
    create temporary table import_rows on commit drop as
      select position, identity, has_source, null::bigint as line_id, ${sql.unsafe(FIELDS)} from import_undecided
        join import_repeated using (identity)
      union all
      select s.position, r.identity, true, l.line_id, ${sql.unsafe(FIELDS)}
        from import_repeated r join statement_lines l on l.account_id = ${accountId} and l.fingerprint = r.fingerprint
          join statement_line_sources s on s.line_id = l.line_id and s.import_id = ${importId}
        where l.line_id >= ${firstLineId}`;
  const unsourced = await sql`
    delete from statement_line_sources s using import_rows r
    where s.import_id = ${importId} and s.position = r.position and r.has_source`;
  const removed = await sql`
    delete from statement_lines l using import_rows r where l.line_id = r.line_id`;
  const { inserted, sources } = await storeNumbered(sql, { importId, organizationId, accountId });
  await sql`drop table import_undecided, import_repeated, import_rows, import_numbered`;
  return { lines: inserted - removed.count, sources: sources - unsourced.count };
}

/**
 * Gives new ordinals to the rows of an identity when one of them contradicts a line of the account: a file with only some of
 * the lines numbers them differently. A row gets the ordinal of the account's line with the same amount. Each of the other rows
 * contradicts one of the other lines, or is new.
 */
async function numberByAmount(sql: Transaction, accountId: number): Promise<void> {
  await sql`
    with known as materialized (
      select n.identity, l.ordinal, l.amount_minor, row_number() over (partition by n.identity, l.amount_minor order by l.ordinal) as same
      from (
        select distinct n.identity, n.provider_reference from import_numbered n
          join statement_lines l on l.account_id = ${accountId} and l.fingerprint = n.fingerprint
        where l.amount_minor <> n.amount_minor) n
        join statement_lines l on l.account_id = ${accountId} and l.provider_reference = n.provider_reference and l.provider_reference <> ''
          and l.fingerprint = line_fingerprint(n.identity, l.ordinal)
    ),
    fitted as (
      select n.*, k.ordinal as found from (
        select identity, position, amount_minor, ordinal, row_number() over (partition by identity, amount_minor order by ordinal) as same
        from import_numbered where identity in (select identity from known)) n
        left join known k using (identity, amount_minor, same)
    ),
    others as (
      select identity, ordinal, row_number() over (partition by identity order by ordinal) as place from known k
      where not exists (select from fitted f where f.identity = k.identity and f.found = k.ordinal)
    ),
    placed as (
      select f.identity, f.position, row_number() over (partition by f.identity order by f.ordinal) as place
      from fitted f where f.found is null
    ),
    renumbered as (
      select position, found as ordinal from fitted where found is not null
      union all
      select p.position, coalesce(o.ordinal, (select max(k.ordinal) + p.place - count(t.place) from known k
          left join others t on t.identity = k.identity and t.ordinal = k.ordinal where k.identity = p.identity))::integer
      from placed p left join others o using (identity, place)
    )
    update import_numbered n set ordinal = r.ordinal, fingerprint = line_fingerprint(n.identity, r.ordinal)
    from renumbered r where n.position = r.position`;
}

async function storeNumbered(
  sql: Transaction,
  { importId, organizationId, accountId }: LineOwner,
): Promise<{ readonly inserted: number; readonly sources: number }> {
  await sql`
    create temporary table import_numbered on commit drop as
      select n.*, line_fingerprint(n.identity, n.ordinal) as fingerprint from (
        select *, (row_number() over (partition by identity order by amount_minor, booked_on, position) - 1)::integer as ordinal
        from import_rows) n`;
  await sql`create index on import_numbered (fingerprint)`;
  await sql`analyze import_numbered`;
  await numberByAmount(sql, accountId);
  await sql`
    insert into statement_malformed (import_id, position, column_name, reason, raw)
    select ${importId}, n.position, '', 'The account has this line already, with the amount ' || l.amount_minor || ' ' || l.currency
        || ' in minor units; this file has ' || n.amount_minor || ' ' || n.currency || '. If this file is wrong, withdraw it. '
        || 'If the other file is wrong, withdraw both, and upload this one again.',
        concat_ws(';', n.provider_reference, n.kind, n.provider_type, n.amount_minor, n.currency)
      from import_numbered n join statement_lines l on l.account_id = ${accountId} and l.fingerprint = n.fingerprint
      where (l.amount_minor, l.currency) <> (n.amount_minor, n.currency)
    on conflict (import_id, position) do nothing`;
  const inserted = await sql`
    insert into statement_lines (organization_id, account_id, fingerprint, fingerprint_version, ordinal, ${sql.unsafe(FIELDS)})
    select ${organizationId}, ${accountId}, fingerprint, ${IDENTITY_VERSION}, ordinal, ${sql.unsafe(FIELDS)}
      from import_numbered order by position
    on conflict (account_id, fingerprint) do nothing`;
  const sources = await sql`
    insert into statement_line_sources (import_id, position, line_id)
    select ${importId}, n.position, l.line_id
      from import_numbered n join statement_lines l on l.account_id = ${accountId} and l.fingerprint = n.fingerprint
      where (l.amount_minor, l.currency) = (n.amount_minor, n.currency)`;
  return { inserted: inserted.count, sources: sources.count };
}
