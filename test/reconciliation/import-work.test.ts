/** Imports of real files into a real PostgreSQL; the bytes come from memory instead of the object store. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { FileLostError } from "../../services/bus/statement-files.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import type { StatementFormat } from "../../services/reconciliation/formats/format.ts";
import { sandbox } from "../../services/reconciliation/formats/sandbox.ts";
import { withdrawImport } from "../../services/reconciliation/import-decisions.ts";
import { type ImportDeps, importNext } from "../../services/reconciliation/import-work.ts";
import { IMPORT_LIMITS } from "../../services/reconciliation/limits.ts";
import { removeLines, takeImport } from "../../services/reconciliation/sql/imports.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";
import { zipOf } from "./formats/zip-writer.ts";

let testDatabase: TestDatabase;
let database: Database;
let longDatabase: Database;
let organizationId: number;
const files = new Map<string, string | Buffer>();

beforeAll(async () => {
  testDatabase = await cloneDatabase();
  database = openDatabase({ url: testDatabase.url, maxConnections: 4 });
  longDatabase = openDatabase({ url: testDatabase.url, maxConnections: 2, longestWorkMs: IMPORT_LIMITS.longestWorkMs });
  const [row] = await database<[{ id: number }]>`
    insert into organizations (name) values ('Osteria') returning organization_id as id`;
  organizationId = row.id;
});
afterAll(async () => {
  await closeDatabase(longDatabase);
  await closeDatabase(database);
  await testDatabase.drop();
});

const HEADER = "line,payment_id,reference,account,amount,currency,paid_at";
interface Row {
  readonly id: string;
  readonly amount?: string;
  readonly day?: string;
  readonly account?: string;
}
/** The sandbox provider's statement. */
const statementOf = (rows: readonly Row[]): string =>
  [
    HEADER,
    ...rows.map(
      ({ id, amount = "12.50", day = "2026-11-01", account = "acct_1" }, index) =>
        `${index + 1},${id},int_${id},${account},${amount},EUR,${day}T10:00:00.000Z`,
    ),
    "",
  ].join("\n");

let accounts = 0;
async function addAccount(): Promise<number> {
  accounts += 1;
  const [row] = await database<[{ id: number }]>`
    insert into statement_accounts (organization_id, provider, reference, name, mode)
    values (${organizationId}, ${`sandbox-${accounts}`}, 'acct_1', 'Sandbox', 'test') returning account_id as id`;
  return row.id;
}

/** An uploaded file that waits for its import. */
async function upload(accountId: number, text: string | Buffer): Promise<number> {
  const name = randomUUID();
  files.set(name, text);
  const [row] = await database<[{ id: number }]>`
    insert into statement_imports (organization_id, account_id, sha256, file_name, size_bytes, object_name, format,
      format_version, encoding, status, uploaded_by)
    values (${organizationId}, ${accountId}, sha256(convert_to(${name}, 'UTF8')), 'statement.csv', ${text.length}, ${name},
      'sandbox', 1, 'utf-8', 'waiting', 1) returning import_id as id`;
  return row.id;
}

const depsOf = (more: Partial<ImportDeps> = {}): ImportDeps => ({
  database,
  longDatabase,
  async *openFile(name) {
    const content = files.get(name) ?? "";
    yield typeof content === "string" ? Buffer.from(content) : content;
  },
  formatNamed: (name) => (name === "sandbox" ? sandbox : undefined),
  ...more,
});

interface ImportFacts {
  readonly status: string;
  readonly status_code: string | null;
  readonly status_detail: string | null;
  readonly records: number;
  readonly lines_new: number;
  readonly lines_known: number;
  readonly malformed: number;
  readonly from_date: string;
}
async function factsOf(importId: number): Promise<ImportFacts> {
  const [row] = await database<[ImportFacts]>`
    select status, status_code, status_detail, records, lines_new, lines_known, malformed, from_date::text as from_date
    from statement_imports where import_id = ${importId}`;
  return row;
}

async function importText(accountId: number, text: string | Buffer, deps: ImportDeps = depsOf()): Promise<ImportFacts> {
  const importId = await upload(accountId, text);
  expect(await importNext(deps)).toBe(true);
  return await factsOf(importId);
}

const linesOf = async (accountId: number): Promise<readonly string[]> =>
  (
    await database<{ name: string }[]>`
      select provider_reference || ' ' || amount_minor as name from statement_lines where account_id = ${accountId}
      order by provider_reference, ordinal`
  ).map(({ name }) => name);

/** Rows of which a part is missing, in all accounts. */
async function brokenRows(): Promise<number> {
  const [row] = await database<[{ rows: number }]>`
    select (select count(*) from statement_lines l where not exists (
        select from statement_line_sources s where s.line_id = l.line_id)
      or not exists (select from statement_accounts a where (a.organization_id, a.account_id) = (l.organization_id, l.account_id)))
      + (select count(*) from statement_line_sources s where not exists (select from statement_lines l where l.line_id = s.line_id)
      or not exists (select from statement_imports i where i.import_id = s.import_id)) as rows`;
  return row.rows;
}
afterEach(async () => {
  expect(await brokenRows(), "lines without a source, or sources without a line").toBe(0);
});

/** A format whose parser stops at the first line until it is released, and then goes on or fails. */
function pausingFormat(): {
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

describe("an import", () => {
  test("stores each line once, with its file and its days", async () => {
    const accountId = await addAccount();
    const facts = await importText(
      accountId,
      statementOf([{ id: "b" }, { id: "a", amount: "0.99", day: "2026-10-31" }]),
    );
    expect(facts).toMatchObject({ status: "imported", lines_new: 2, lines_known: 0, malformed: 0 });
    expect(facts.from_date).toBe("2026-10-31");
    expect(await linesOf(accountId)).toEqual(["a 99", "b 1250"]);
  });

  test("of a file that overlaps another: only the new lines are added, in whichever order the files come", async () => {
    const [first, second] = [statementOf([{ id: "a" }, { id: "b" }]), statementOf([{ id: "b" }, { id: "c" }])];
    const [forwards, backwards] = [await addAccount(), await addAccount()];
    await importText(forwards, first);
    expect(await importText(forwards, second)).toMatchObject({ lines_new: 1, lines_known: 1 });
    await importText(backwards, second);
    await importText(backwards, first);
    expect(await linesOf(forwards)).toEqual(["a 1250", "b 1250", "c 1250"]);
    expect(await linesOf(backwards)).toEqual(await linesOf(forwards));
  });

  test("of a file with two equal rows: both are lines, and the same rows again are none", async () => {
    const accountId = await addAccount();
    await importText(accountId, statementOf([{ id: "twice" }, { id: "twice" }]));
    expect(await importText(accountId, statementOf([{ id: "twice" }, { id: "twice" }, { id: "new" }]))).toMatchObject({
      lines_new: 1,
      lines_known: 2,
    });
    expect(await linesOf(accountId)).toEqual(["new 1250", "twice 1250", "twice 1250"]);
  });

  test("of a known line with another amount: the line stays, and the row is listed with both amounts", async () => {
    const accountId = await addAccount();
    await importText(accountId, statementOf([{ id: "a" }]));
    const facts = await importText(accountId, statementOf([{ id: "a", amount: "12.40" }, { id: "b" }]));
    expect(facts).toMatchObject({ status: "imported", lines_new: 1, lines_known: 0, malformed: 1 });
    expect(await linesOf(accountId)).toEqual(["a 1250", "b 1250"]);
    const [row] = await database<[{ reason: string; position: number }]>`
      select m.reason, m.position from statement_malformed m join statement_imports using (import_id)
      where account_id = ${accountId}`;
    expect(row).toMatchObject({
      position: 2,
      reason: expect.stringMatching(/1250 EUR in minor units; this file has 1240 EUR/),
    });
  });

  test("of a file with a bad row: the row is listed, and the others are stored", async () => {
    const accountId = await addAccount();
    const facts = await importText(accountId, statementOf([{ id: "a" }, { id: "b", amount: "12,50,1" }, { id: "c" }]));
    expect(facts).toMatchObject({ status: "imported", lines_new: 2, malformed: 1, records: 3 });
    expect(await linesOf(accountId)).toEqual(["a 1250", "c 1250"]);
  });

  test("of a file that is of no known header: it is refused in one sentence, and nothing stays", async () => {
    const accountId = await addAccount();
    const facts = await importText(accountId, "date,amount\n2026-11-01,12.50\n");
    expect(facts).toMatchObject({ status: "refused", status_code: expect.stringMatching(/^\w+$/), lines_new: 0 });
    expect(facts.status_detail).toMatch(/^[A-Z].*\.$/);
    expect(await linesOf(accountId)).toEqual([]);
  });

  test("of a file of another account: it is held, and an operator's release imports it", async () => {
    const accountId = await addAccount();
    const text = statementOf([{ id: "a", account: "acct_2" }]);
    const facts = await importText(accountId, text);
    expect(facts).toMatchObject({ status: "held", status_code: "other_account", lines_new: 0 });
    expect(await linesOf(accountId)).toEqual([]);
    await database`
      update statement_imports set status = 'waiting', released_by = 1, released_at = now(), release_reason = 'Renamed.'
      where account_id = ${accountId}`;
    expect(await importNext(depsOf())).toBe(true);
    expect(await linesOf(accountId)).toEqual(["a 1250"]);
  });

  test("of text with tabs, backslashes, line breaks and NUL: it is stored verbatim", async () => {
    const accountId = await addAccount();
    const reference = "a\tb\\c\\N";
    await importText(accountId, `${HEADER}\n1,"${reference}","x\ny",acct_1,12.50,EUR,2026-11-01T10:00:00.000Z\n`);
    const [row] = await database<[{ provider_reference: string; merchant_reference: string }]>`
      select provider_reference, merchant_reference from statement_lines where account_id = ${accountId}`;
    expect(row).toEqual({ provider_reference: reference, merchant_reference: "x\ny" });
  });
});

describe("an import that is interrupted", () => {
  test("by an error of its process: nothing is stored, and the next process imports it from the beginning", async () => {
    const accountId = await addAccount();
    const importId = await upload(accountId, statementOf([{ id: "a" }, { id: "b" }]));
    const { format, release } = pausingFormat();
    release(new Error("The process ends."));
    await expect(importNext(depsOf({ formatNamed: () => format }))).rejects.toThrow("The process ends.");
    expect(await linesOf(accountId)).toEqual([]);
    expect(await importNext(depsOf()), "the lease has not passed").toBe(false);
    await database`update statement_imports set leased_until = now() where import_id = ${importId}`;
    expect(await importNext(depsOf())).toBe(true);
    expect(await factsOf(importId)).toMatchObject({ status: "imported", lines_new: 2 });
  });

  test("by a stall that another process has overtaken: the first one stores nothing more", async () => {
    const accountId = await addAccount();
    const importId = await upload(accountId, statementOf([{ id: "a" }, { id: "b" }]));
    const { format, reached, release } = pausingFormat();
    const stalled = importNext(depsOf({ formatNamed: () => format }));
    await reached;
    await database`update statement_imports set leased_until = now() where import_id = ${importId}`;
    expect(await importNext(depsOf())).toBe(true);
    release();
    expect(await stalled).toBe(true);
    expect(await factsOf(importId)).toMatchObject({ status: "imported", lines_new: 2, lines_known: 0 });
    expect(await linesOf(accountId)).toEqual(["a 1250", "b 1250"]);
  });
});

test("an import that is withdrawn while it is under way: nothing of it is stored, and it is withdrawn", async () => {
  const accountId = await addAccount();
  const importId = await upload(accountId, statementOf([{ id: "a" }, { id: "b", amount: "none" }]));
  const { format, reached, release } = pausingFormat();
  const stalled = importNext(depsOf({ formatNamed: () => format }));
  await reached;
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const caller = {
    userId: 7,
    name: "Rita",
    organizationId,
    role: "reconciliation_operator",
    permissions: ["reconciliation.manage"],
  } satisfies Caller;
  const decision = { caller, importId, reason: "Wrong file." };
  const { import: withdrawn } = await withdrawImport({ database, longDatabase, log, underWay: new Set() }, decision);
  expect(withdrawn.status).toBe("withdrawn");
  release();
  expect(await stalled).toBe(true);
  expect(await factsOf(importId)).toMatchObject({ status: "withdrawn", lines_new: 0 });
  expect(await linesOf(accountId)).toEqual([]);
  expect(await database`select from statement_malformed where import_id = ${importId}`).toHaveLength(0);
});

test("an archive: the lines of all its files are stored, and a refusal names the file", async () => {
  const accountId = await addAccount();
  const [monday, tuesday] = [[{ id: "a" }], [{ id: "b" }, { id: "c" }]].map((rows) => ({ content: statementOf(rows) }));
  const archive = zipOf([
    { name: "monday.csv", content: "", ...monday },
    { name: "tuesday.csv", content: "", ...tuesday },
  ]);
  expect(await importText(accountId, archive)).toMatchObject({ status: "imported", lines_new: 3 });
  expect(await linesOf(accountId)).toEqual(["a 1250", "b 1250", "c 1250"]);
  const wrong = zipOf([{ name: "monday.csv", content: "x,y\n1,2\n" }]);
  const refused = await importText(accountId, wrong);
  expect(refused).toMatchObject({ status: "refused", status_detail: expect.stringContaining("monday.csv") as string });
});

test("a file that the object store has lost: it is refused with the next step", async () => {
  const openFile = (): never => {
    throw new FileLostError("The file is not in the object store.");
  };
  const refused = await importText(await addAccount(), statementOf([{ id: "a" }]), depsOf({ openFile }));
  expect(refused).toMatchObject({ status: "refused", status_code: "file_lost" });
});

test("an import that has failed too often: it is refused, and not begun again for ever", async () => {
  const importId = await upload(await addAccount(), statementOf([{ id: "a" }]));
  await database`update statement_imports set attempts = ${IMPORT_LIMITS.attempts} where import_id = ${importId}`;
  expect(await importNext(depsOf())).toBe(true);
  expect(await factsOf(importId)).toMatchObject({ status: "refused", status_code: "import_failed" });
});

test("a process that stops: its import waits again at once, and counts no attempt", async () => {
  const importId = await upload(await addAccount(), statementOf([{ id: "a" }]));
  await importNext(depsOf({ stopping: AbortSignal.abort() }));
  const [row] = await database`select status, attempts, leased_by from statement_imports where import_id = ${importId}`;
  expect(row).toEqual({ status: "waiting", attempts: 0, leased_by: null });
  await importNext(depsOf());
  expect(await factsOf(importId)).toMatchObject({ status: "imported", lines_new: 1 });
});

test("200 files of five accounts at once, by four workers: each line is stored once", async () => {
  const accountIds = await Promise.all(Array.from({ length: 5 }, addAccount));
  for (let nth = 0; nth < 200; nth += 1) {
    const ids = Array.from({ length: 20 }, (_, at) => ({ id: `p${Math.floor(nth / 5) * 10 + at}` }));
    await upload(accountIds[nth % 5] ?? 0, statementOf(ids));
  }
  const work = async (): Promise<void> => {
    while (await importNext(depsOf())) {
      // Until none waits.
    }
  };
  await Promise.all([work(), work(), work(), work()]);
  for (const accountId of accountIds) expect(await linesOf(accountId)).toHaveLength(410);
});

describe("the next import", () => {
  const take = () => database.begin((tx) => takeImport(tx, { attempt: randomUUID(), leaseMs: 60_000 }));

  /** With so many files that wait; returns its account. */
  async function addOrganization(name: string, waiting: number): Promise<number> {
    const earlier = organizationId;
    try {
      const [made] = await database<[{ id: number }]>`
        insert into organizations (name) values (${name}) returning organization_id as id`;
      organizationId = made.id;
      const accountId = await addAccount();
      for (let nth = 0; nth < waiting; nth += 1) await upload(accountId, statementOf([{ id: `${nth}` }]));
      return accountId;
    } finally {
      organizationId = earlier;
    }
  }
  async function importAll(): Promise<void> {
    await database`update statement_imports set leased_until = now() where status = 'importing'`;
    while (await importNext(depsOf())) {
      // Until none is left to the other tests.
    }
  }

  test("is of the organization with the fewest under way, however many of another one wait", async () => {
    const busy = await addOrganization("Trattoria", 3);
    const other = await addOrganization("Pizzeria", 1);
    const taken = [await take(), await take(), await take(), await take(), await take()];
    expect(taken.map((row) => row?.account_id)).toEqual([busy, other, busy, busy, undefined]);
    await importAll();
  });

  test("is of a third organization although two with many files have a worker each", async () => {
    const busy = [await addOrganization("Ristorante", 6), await addOrganization("Enoteca", 6)];
    const first = [await take(), await take()];
    expect(first.map((row) => row?.account_id)).toEqual(busy);
    const third = await addOrganization("Gelateria", 1);
    const later: (number | undefined)[] = [];
    for (const ended of first) {
      await database`
        update statement_imports set status = 'imported', leased_by = null, leased_until = null, ended_at = now()
        where import_id = ${ended?.import_id ?? 0}`;
      later.push((await take())?.account_id);
    }
    expect(later).toContain(third);
    await importAll();
  });

  test("is of another organization for each of two processes that take one at the same moment", async () => {
    const both = [await addOrganization("Caffè", 3), await addOrganization("Taverna", 3)];
    const taken = await Promise.all([take(), take()]);
    expect(new Set(taken.map((row) => row?.account_id))).toEqual(new Set(both));
    await importAll();
  });
});

test("two imports of one account at once: each line is stored once", async () => {
  const accountId = await addAccount();
  const texts = [0, 1, 2, 3].map((from) =>
    statementOf(Array.from({ length: 40 }, (_, at) => ({ id: `p${from * 10 + at}` }))),
  );
  for (const text of texts) await upload(accountId, text);
  await Promise.all(texts.map(() => importNext(depsOf())));
  expect(await linesOf(accountId)).toHaveLength(70);
  const [sum] = await database<[{ new: number; known: number }]>`
    select sum(lines_new)::int as new, sum(lines_known)::int as known from statement_imports where account_id = ${accountId}`;
  expect(sum).toEqual({ new: 70, known: 90 });
});

test("a file that is withdrawn: its lines disappear, and those that another file has stay", async () => {
  const accountId = await addAccount();
  const importId = await upload(accountId, statementOf([{ id: "a" }, { id: "b" }]));
  await importNext(depsOf());
  await importText(accountId, statementOf([{ id: "b" }, { id: "c" }]));
  await longDatabase.begin((tx) => removeLines(tx, importId));
  expect(await linesOf(accountId)).toEqual(["b 1250", "c 1250"]);
});
