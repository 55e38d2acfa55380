/** Imports of real files into a real PostgreSQL; the bytes come from memory instead of the object store. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import type { StatementFormat } from "../../services/reconciliation/formats/format.ts";
import { sandbox } from "../../services/reconciliation/formats/sandbox.ts";
import { type ImportDeps, importNext } from "../../services/reconciliation/import-work.ts";
import { IMPORT_LIMITS } from "../../services/reconciliation/limits.ts";
import { cloneDatabase } from "../support/servers.ts";

export const HEADER = "line,payment_id,reference,account,amount,currency,paid_at";
interface Row {
  readonly id: string;
  readonly amount?: string;
  readonly day?: string;
  readonly account?: string;
}
/** The sandbox provider's statement. */
export const statementOf = (rows: readonly Row[]): string =>
  [
    HEADER,
    ...rows.map(
      ({ id, amount = "12.50", day = "2026-11-01", account = "acct_1" }, index) =>
        `${index + 1},${id},int_${id},${account},${amount},EUR,${day}T10:00:00.000Z`,
    ),
    "",
  ].join("\n");

export interface ImportFacts {
  readonly status: string;
  readonly status_code: string | null;
  readonly status_detail: string | null;
  readonly records: number;
  readonly lines_new: number;
  readonly lines_known: number;
  readonly malformed: number;
  readonly from_date: string;
}

export interface ImportWorld {
  readonly organizationId: number;
  readonly database: Database;
  readonly longDatabase: Database;
  addOrganization(name: string): Promise<number>;
  /** Adds an account to the world's organization, unless another organization is named. */
  addAccount(organizationId?: number): Promise<number>;
  /** An uploaded file that waits for its import. */
  upload(accountId: number, text: string | Buffer): Promise<number>;
  depsOf(more?: Partial<ImportDeps>): ImportDeps;
  /** The errors of imports that could not be carried out. */
  readonly failed: readonly unknown[];
  importText(accountId: number, text: string | Buffer, deps?: ImportDeps): Promise<ImportFacts>;
  factsOf(importId: number): Promise<ImportFacts>;
  /** `<reference> <amount>` of each line of the account, in the order of the references. */
  linesOf(accountId: number): Promise<readonly string[]>;
  /** Throws when lines have no source, or sources have no line. */
  requireWholeRows(): Promise<void>;
  stop(): Promise<void>;
}

export async function startImportWorld(): Promise<ImportWorld> {
  const testDatabase = await cloneDatabase();
  const database = openDatabase({ url: testDatabase.url, maxConnections: 4 });
  const { longestWorkMs } = IMPORT_LIMITS;
  const longDatabase = openDatabase({
    url: testDatabase.url,
    maxConnections: 2,
    longestWorkMs,
    idleInTransactionMs: longestWorkMs,
  });
  const files = new Map<string, string | Buffer>();
  const organizationId = await addOrganization(database, "Osteria");
  const upload = async (accountId: number, text: string | Buffer): Promise<number> => {
    const name = randomUUID();
    files.set(name, text);
    return await insertUpload(database, { accountId, name, sizeBytes: text.length });
  };
  const failed: unknown[] = [];
  const depsOf = (more: Partial<ImportDeps> = {}): ImportDeps => ({
    database,
    longDatabase,
    async *openFile(name) {
      const content = files.get(name) ?? "";
      yield typeof content === "string" ? Buffer.from(content) : content;
    },
    formatNamed: (name) => (name === "sandbox" ? sandbox : undefined),
    failures: { failed: (error) => void failed.push(error) },
    ...more,
  });
  return {
    organizationId,
    database,
    longDatabase,
    addOrganization: (name) => addOrganization(database, name),
    addAccount: (of = organizationId) => addAccount(database, of),
    upload,
    depsOf,
    failed,
    async importText(accountId, text, deps = depsOf()) {
      const importId = await upload(accountId, text);
      expect(await importNext(deps)).toBe(true);
      return await factsOf(database, importId);
    },
    factsOf: (importId) => factsOf(database, importId),
    linesOf: (accountId) => linesOf(database, accountId),
    async requireWholeRows() {
      expect(await brokenRows(database), "lines without a source, or sources without a line").toBe(0);
    },
    async stop() {
      await closeDatabase(longDatabase);
      await closeDatabase(database);
      await testDatabase.drop();
    },
  };
}

async function addOrganization(database: Database, name: string): Promise<number> {
  const [row] = await database<[{ id: number }]>`
    insert into organizations (name) values (${name}) returning organization_id as id`;
  return row.id;
}

let accounts = 0;
async function addAccount(database: Database, organizationId: number): Promise<number> {
  accounts += 1;
  const [row] = await database<[{ id: number }]>`
    insert into statement_accounts (organization_id, provider, reference, name, mode)
    values (${organizationId}, ${`sandbox-${accounts}`}, 'acct_1', 'Sandbox', 'test') returning account_id as id`;
  return row.id;
}

async function insertUpload(
  database: Database,
  file: { readonly accountId: number; readonly name: string; readonly sizeBytes: number },
): Promise<number> {
  const { accountId, name, sizeBytes } = file;
  const [row] = await database<[{ id: number }]>`
    insert into statement_imports (organization_id, account_id, sha256, file_name, size_bytes, object_name, format,
      format_version, encoding, status, uploaded_by)
    select organization_id, account_id, sha256(convert_to(${name}, 'UTF8')), 'statement.csv', ${sizeBytes}::bigint, ${name},
      'sandbox', 1, 'utf-8', 'waiting', 1
    from statement_accounts where account_id = ${accountId} returning import_id as id`;
  return row.id;
}

async function factsOf(database: Database, importId: number): Promise<ImportFacts> {
  const [row] = await database<[ImportFacts]>`
    select status, status_code, status_detail, records, lines_new, lines_known, malformed, from_date::text as from_date
    from statement_imports where import_id = ${importId}`;
  return row;
}

const linesOf = async (database: Database, accountId: number): Promise<readonly string[]> =>
  (
    await database<{ name: string }[]>`
      select provider_reference || ' ' || amount_minor as name from statement_lines where account_id = ${accountId}
      order by provider_reference, ordinal`
  ).map(({ name }) => name);

/** Counts the incomplete rows of all accounts. */
async function brokenRows(database: Database): Promise<number> {
  const [row] = await database<[{ rows: number }]>`
    select (select count(*) from statement_lines l where not exists (
        select from statement_line_sources s where s.line_id = l.line_id)
      or not exists (select from statement_accounts a where (a.organization_id, a.account_id) = (l.organization_id, l.account_id)))
      + (select count(*) from statement_line_sources s where not exists (select from statement_lines l where l.line_id = s.line_id)
      or not exists (select from statement_imports i where i.import_id = s.import_id)) as rows`;
  return row.rows;
}

/** A format whose parser stops at the first line until it is released, and then continues or fails. */
export function pausingFormat(): {
  readonly format: StatementFormat;
  readonly reached: Promise<void>;
  readonly release: (error?: Error) => void;
} {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<Error | undefined>();
  const format: StatementFormat = {
    ...sandbox,
    async *parse(text, options) {
      for await (const record of sandbox.parse(text, options)) {
        yield record;
        reached.resolve();
        const error = await released.promise;
        if (error !== undefined) throw error;
      }
    },
  };
  return { format, reached: reached.promise, release: (error) => released.resolve(error) };
}
