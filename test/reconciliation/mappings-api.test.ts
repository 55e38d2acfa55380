/** Mappings, lines and decisions about imports through a real gateway, a real service and the object store. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { storeFile } from "../../services/bus/statement-files.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { testStatementMapping } from "../../services/reconciliation/mapping-tests.ts";
import { addRunMetrics } from "../../services/reconciliation/metrics.ts";
import { addOperator, logIn, type Person } from "../support/people.ts";
import { QUIET } from "../support/quiet-log.ts";
import { addOrganization } from "../support/second-organization.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { waitFor } from "../support/wait-for.ts";
import { zipOf } from "./formats/zip-writer.ts";

const SAMPLE = join(import.meta.dirname, "samples/csv/bank-windows-1252.csv");
/** Every field that a definition can have. */
const DEFINITION = {
  encoding: "windows-1252",
  delimiter: ";",
  header_row: 4,
  skip: [{ row_begins_with: "Summe;" }, { column: "Art", is: ["Saldo"] }],
  trim: true,
  decimal_separator: ",",
  thousands_separator: ".",
  units: "major",
  currency: { column: "Währung" },
  amount: { rule: "debit_credit", debit_column: "Soll", credit_column: "Haben" },
  date_formats: ["DD.MM.YYYY"],
  booked_on: { column: "Buchungstag" },
  value_on: { column: "Valuta" },
  kind: { column: "Art", words: { Gutschrift: "bank_credit", Lastschrift: "bank_debit" } },
  payout_reference: {
    column: "Verwendungszweck",
    extract: { pattern: "PID(\\d{6,8})", ignore_case: false },
  },
  text: { columns: ["Verwendungszweck"] },
} as const;

interface Mapping {
  readonly mapping_id: number;
  readonly version: number;
  readonly is_newest: boolean;
  readonly definition: object;
}
interface Line {
  readonly line_id: number;
  readonly amount: string;
  readonly booked_on: string;
  readonly position: number;
  readonly sources: readonly { readonly import_id: number; readonly position: number }[];
}
interface Lines {
  readonly lines: readonly Line[];
  readonly has_more: boolean;
}
interface Test {
  readonly test_id: number;
  readonly status: string;
  readonly lines: number;
  readonly malformed: number;
  readonly skipped: number;
}

let system: TestSystem;
let database: Database;
let operator: Person;
let stranger: Person;
let accountId: number;

beforeAll(async () => {
  system = await sharedSystem();
  database = openDatabase({ url: system.database.url, maxConnections: 1 });
  operator = await addOperator(system.baseUrl, await logIn(system.baseUrl, "backoffice", system.owner));
  const elsewhere = await logIn(system.baseUrl, "backoffice", (await addOrganization(system)).owner);
  stranger = await addOperator(system.baseUrl, elsewhere, "rita@elsewhere.example");
  accountId = await openAccount("DE-1");
});
afterAll(async () => {
  await closeDatabase(database);
  await system.stop();
});

async function openAccount(reference: string): Promise<number> {
  const facts = { provider: "bank", reference, name: "Bank", mode: "test" };
  return (await operator.good<{ account_id: number }>("POST", "accounts/", { body: facts })).account_id;
}

/** A file that is uploaded and waits for its format. */
async function upload(bytes: Uint8Array, account: number = accountId): Promise<number> {
  const { name, sizeBytes } = await storeFile(system.bus, chunks(bytes));
  const [row] = await database<[{ import_id: number }]>`
    insert into statement_imports (organization_id, account_id, sha256, file_name, size_bytes, object_name, uploaded_by)
    values (${system.sandbox.organizationId}, ${account}, sha256(convert_to(${name}, 'UTF8')), 'a.csv', ${sizeBytes}, ${name},
      ${operator.userId}) returning import_id`;
  return row.import_id;
}
async function* chunks(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
const sample = () => upload(readFileSync(SAMPLE));
/** The sample twice, zipped. */
const zipped = () => upload(zipOf(["march.csv", "april.csv"].map((name) => ({ name, content: readFileSync(SAMPLE) }))));

const MAPPINGS = "statement-mappings/";
const store = (body: object) => operator.good<Mapping>("POST", MAPPINGS, { body: { definition: DEFINITION, ...body } });
const conflict = async (body: object): Promise<string | undefined> =>
  (await operator.refused("conflict", "POST", MAPPINGS, { body: { definition: DEFINITION, ...body } })).body.reason;

describe("a mapping", () => {
  test("is stored as it was sent, and read and listed the same", async () => {
    const mapping = await store({ name: "Bank" });
    expect(mapping).toMatchObject({ version: 1, is_newest: true, definition: DEFINITION });
    expect(await operator.good("GET", `${MAPPINGS}${mapping.mapping_id}/`)).toEqual(mapping);
    const listed = await operator.good<{ statement_mappings: Mapping[] }>("GET", `${MAPPINGS}?name=Bank`);
    expect(listed.statement_mappings).toEqual([mapping]);
  });

  test("a correction is its next version; a version never changes, and an equal definition is no new version", async () => {
    const first = await store({ name: "Corrected" });
    expect(await store({ name: "Corrected" })).toEqual(first);
    const definition = { ...DEFINITION, header_row: 5 };
    const second = await store({ name: "Corrected", corrects: 1, definition });
    expect(second).toMatchObject({ version: 2, is_newest: true, definition: { header_row: 5 } });
    const path = `${MAPPINGS}${first.mapping_id}/`;
    expect(await operator.good("GET", path)).toEqual({ ...first, is_newest: false });
    const newest = await operator.good<{ statement_mappings: Mapping[] }>(
      "GET",
      `${MAPPINGS}?name=Corrected&versions=newest`,
    );
    expect(newest.statement_mappings).toEqual([second]);
  });

  test("two corrections at once: one is stored, the other is refused with the reason", async () => {
    await store({ name: "Of two" });
    const bodies = [6, 7].map((header_row) => ({
      name: "Of two",
      corrects: 1,
      definition: { ...DEFINITION, header_row },
    }));
    const answers = await Promise.all(bodies.map((body) => operator.call("POST", MAPPINGS, { body })));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409]);
    expect(answers.find(({ status }) => status === 409)?.body).toMatchObject({ reason: "mapping_changed" });
    expect(await conflict({ name: "Of two", definition: { ...DEFINITION, header_row: 8 } })).toBe("mapping_exists");
    await operator.refused("not_found", "POST", MAPPINGS, {
      body: { name: "Never stored", corrects: 1, definition: DEFINITION },
    });
  });

  test("an unusable mapping: refused, with an error for each field by its name in the API", async () => {
    const pointersOf = async (more: object) =>
      (
        await operator.refused("invalid_request", "POST", MAPPINGS, {
          body: { name: "Wrong", definition: { ...DEFINITION, ...more } },
        })
      ).body.errors?.map(({ pointer }) => pointer);
    expect(await pointersOf({ date_formats: ["DD.MM.YYYY", "MM.DD.YYYY"] })).toEqual(["/definition/date_formats"]);
    expect(await pointersOf({ decimal_separator: "." })).toEqual(["/definition/thousands_separator"]);
    expect(await pointersOf({ payout_reference: { column: "a", extract: { pattern: "(a+)+" } } })).toEqual([
      "/definition/payout_reference/extract/pattern",
    ]);
    expect(await pointersOf({ headerRow: 1 })).toEqual(["/definition/headerRow"]);
  });

  test("another organization's mapping and its file: not found", async () => {
    const [mapping, importId] = [await store({ name: "Ours" }), await sample()];
    await stranger.refused("not_found", "GET", `${MAPPINGS}${mapping.mapping_id}/`);
    const body = { import_id: importId, definition: DEFINITION };
    await stranger.refused("not_found", "POST", `${MAPPINGS}preview/`, { body });
    await stranger.refused("not_found", "POST", `${MAPPINGS}test/`, { body });
    const theirs = { import_id: importId, mapping_id: mapping.mapping_id };
    await stranger.refused("not_found", "POST", `${MAPPINGS}preview/`, { body: theirs });
    for (const path of [
      `imports/${importId}/lines/`,
      `lines/?account_id=${accountId}`,
      `malformed-rows/?import_id=${importId}`,
    ])
      await stranger.refused("not_found", "GET", path);
    for (const what of ["release", "withdraw"])
      await stranger.refused("not_found", "POST", `imports/${importId}/${what}/`, { body: { reason: "Theirs." } });
  });
});

describe("a preview", () => {
  interface Preview {
    readonly refusal: { readonly code: string; readonly detail: string } | null;
    readonly rows: readonly { readonly position: number; readonly outcome: string }[];
    readonly has_more: boolean;
  }
  const preview = (body: object) => operator.good<Preview>("POST", `${MAPPINGS}preview/`, { body });

  test("shows each row's line, or the reason why the row is malformed", async () => {
    const import_id = await sample();
    const all = await preview({ import_id, definition: DEFINITION, limit: 100 });
    expect(all).toMatchObject({ refusal: null, has_more: false });
    expect(all.rows.slice(0, 4)).toMatchObject([
      {
        position: 5,
        outcome: "line",
        line: { kind: "bank_credit", amount: "1234.50", booked_on: "2026-11-02", payout_reference: "900001" },
        malformed: null,
      },
      { position: 6, outcome: "line", line: { kind: "bank_debit", amount: "-800.00" } },
      {
        position: 8,
        outcome: "malformed",
        line: null,
        malformed: {
          column: "Haben",
          reason: expect.stringMatching(/\.$/),
          reason_code: "debit_and_credit",
          reason_parameters: {},
        },
      },
      { position: 9 },
    ]);
    expect(new Set(all.rows.map(({ outcome }) => outcome))).toEqual(new Set(["line", "malformed", "skipped"]));
    const two = await preview({ import_id, definition: DEFINITION, limit: 2 });
    expect(two).toEqual({ ...all, rows: all.rows.slice(0, 2), has_more: true });
  });

  test("a stored mapping or its definition: the same preview, or a reason; both or neither: refused", async () => {
    const import_id = await sample();
    const { mapping_id } = await store({ name: "For a preview" });
    expect(await preview({ import_id, mapping_id })).toEqual(await preview({ import_id, definition: DEFINITION }));
    const other = { ...DEFINITION, header_row: 5 };
    expect(await preview({ import_id, definition: other })).toMatchObject({
      refusal: { code: "mapping_refused" },
      rows: [],
    });
    for (const body of [{ import_id }, { import_id, mapping_id, definition: DEFINITION }])
      await operator.refused("invalid_request", "POST", `${MAPPINGS}preview/`, { body });
  });

  test("an archive: the rows of its files, one after another; a PDF: the kind of the file", async () => {
    const one = await preview({ import_id: await sample(), definition: DEFINITION, limit: 100 });
    const two = await preview({ import_id: await zipped(), definition: DEFINITION, limit: 100 });
    expect(two.refusal).toBeNull();
    expect(two.rows.map(({ outcome }) => outcome)).toEqual([...one.rows, ...one.rows].map(({ outcome }) => outcome));
    expect(two.rows.slice(0, one.rows.length)).toEqual(one.rows);
    expect(two.rows.at(-1)?.position).toBeGreaterThan(one.rows.at(-1)?.position ?? 0);
    const pdf = await preview({ import_id: await upload(Buffer.from("%PDF-1.7")), definition: DEFINITION });
    expect(pdf.refusal).toMatchObject({ code: "not_text", detail: expect.stringContaining("a PDF") as string });
  });

  test("rows of a thousand columns and a megabyte: as many of the first rows as one answer can have", async () => {
    const header = ["Day", "Amount", ...Array.from({ length: 998 }, (_, column) => `Column ${column}`)].join(";");
    const row = ["02/03/2026", "1,00", ...Array.from({ length: 998 }, () => "x".repeat(1_000))].join(";");
    const importId = await upload(Buffer.from([header, ...Array.from({ length: 101 }, () => row), ""].join("\n")));
    const definition = {
      encoding: "utf-8",
      delimiter: ";",
      header_row: 1,
      decimal_separator: ",",
      currency: { fixed: "EUR" },
      amount: { rule: "signed", column: "Amount", money_in: "positive" },
      kind: { fixed: "payment" },
      date_formats: ["DD/MM/YYYY"],
      booked_on: { column: "Day" },
    };
    const body = { import_id: importId, definition, limit: 100 };
    const answer = await operator.good<{ rows: { line: object }[]; has_more: boolean }>("POST", `${MAPPINGS}preview/`, {
      body,
    });
    expect(answer).toMatchObject({ has_more: true, rows: [{ line: { amount: "1.00", booked_on: "2026-03-02" } }] });
  });

  test("a file whose bytes are deleted: refused", async () => {
    const import_id = await sample();
    await database`update statement_imports set object_name = null where import_id = ${import_id}`;
    const body = { import_id, definition: DEFINITION };
    const { body: refused } = await operator.refused("conflict", "POST", `${MAPPINGS}preview/`, { body });
    expect(refused.reason).toBe("file_gone");
  });
});

describe("a test of a mapping", () => {
  const ended = (testId: number) =>
    waitFor("the end of the test", async () => {
      const found = await operator.good<Test>("GET", `mapping-tests/${testId}/`);
      return found.status !== "running" && found;
    });
  const start = async (body: object) =>
    await ended((await operator.good<Test>("POST", `${MAPPINGS}test/`, { body })).test_id);

  test("reads the whole file, counts and adds up, and stores no line", async () => {
    const import_id = await sample();
    const done = await start({ import_id, definition: DEFINITION });
    expect(done).toMatchObject({
      status: "done",
      refusal: null,
      lines: 3,
      from_date: "2026-11-02",
      to_date: "2026-11-08",
      totals: [
        { currency: "EUR", kind: "bank_credit", lines: 2, amount: "1236.50", fee: "0.00" },
        { currency: "EUR", kind: "bank_debit", lines: 1, amount: "-800.00", fee: "0.00" },
      ],
    });
    expect(done.malformed).toBeGreaterThan(0);
    expect(done.skipped).toBe(1);
    expect(await operator.good("GET", `mapping-tests/${done.test_id}/`)).toEqual(done);
    await stranger.refused("not_found", "GET", `mapping-tests/${done.test_id}/`);
    expect(await database`select from statement_lines where account_id = ${accountId}`).toHaveLength(0);
  });

  test("an archive: reads all its files", async () => {
    const done = await start({ import_id: await zipped(), definition: DEFINITION });
    expect(done).toMatchObject({ status: "done", lines: 6, skipped: 2 });
  });

  test("a file that the mapping does not fit: refused; a file whose bytes are lost: failed", async () => {
    const other = { ...DEFINITION, header_row: 5 };
    const refused = await start({ import_id: await sample(), definition: other });
    expect(refused).toMatchObject({ status: "refused", refusal: { code: "mapping_refused" } });
    const lost = await sample();
    await database`update statement_imports set object_name = 'never-stored' where import_id = ${lost}`;
    expect(await start({ import_id: lost, definition: DEFINITION })).toMatchObject({ status: "failed" });
  });

  test("an archive that gives no row for a long time: the test shows that it lives, and ends with its service", async () => {
    const { mapping_id: mappingId } = await store({ name: "Without rows" });
    const importId = await sample();
    const header = readFileSync(SAMPLE, "latin1").split("\n").slice(0, 4);
    const content = Buffer.from([...header, "\n".repeat(1_024 * 1_024)].join("\n"), "latin1");
    const archive = zipOf([{ name: "silent.csv", content }]);
    const stopping = new AbortController();
    const openFile = async function* (): AsyncIterable<Uint8Array> {
      yield archive;
    };
    await database.unsafe(`
      create sequence test_writes;
      create function count_write() returns trigger language plpgsql as $$
        begin perform nextval('test_writes'); return new; end $$;
      create trigger count_write before update on mapping_tests for each row execute function count_write()`);
    const work = { database, longDatabase: database, log: QUIET, metrics: addRunMetrics(undefined, database) };
    const deps = {
      ...work,
      underWay: new Set<never>(),
      startedRuns: new Set<never>(),
      openFile,
      running: new Set<never>(),
      progressMs: 0,
    };
    const caller: Caller = {
      userId: operator.userId,
      name: "Rita",
      organizationId: system.sandbox.organizationId,
      role: "reconciliation_operator",
      permissions: ["reconciliation.manage"],
    };
    const run = async () => {
      const request = { caller, importId, mappingId };
      const { test: started } = await testStatementMapping({ ...deps, stopping: stopping.signal }, request);
      return await ended(started.testId);
    };
    try {
      expect(await run()).toMatchObject({ status: "done", lines: 0, malformed: 0 });
      const [writes] = await database`select last_value from test_writes`;
      expect(Number(writes?.["last_value"]), "writes of its progress while no row comes").toBeGreaterThan(10);
      stopping.abort();
      expect(await run()).toMatchObject({ status: "failed", refusal: { code: "stopped" } });
    } finally {
      await database`drop function count_write cascade`;
    }
  });

  test("a test whose process has ended: failed", async () => {
    const { test_id } = await start({ import_id: await sample(), definition: DEFINITION });
    await database`
      update mapping_tests set status = 'running', ended_at = null, seen_at = now() - interval '1 hour' where test_id = ${test_id}`;
    const path = `mapping-tests/${test_id}/`;
    expect(await operator.good("GET", path)).toMatchObject({ status: "failed", refusal: { code: "stopped" } });
  });
});

describe("lists of lines", () => {
  let account: number;
  let first: number;
  let second: number;

  beforeAll(async () => {
    account = await openAccount("DE-lines");
    first = await upload(Buffer.from("1"), account);
    second = await upload(Buffer.from("2"), account);
    // Eleven lines in two files; the sixth is in both.
    await database`
      with l as (
        insert into statement_lines (organization_id, account_id, fingerprint, fingerprint_version, kind, provider_type,
          amount_minor, currency, booked_on, provider_reference, payment_reference, merchant_reference, payout_reference,
          terminal, account, text)
        select ${system.sandbox.organizationId}, ${account}, sha256(int4send(n)), 1, case when n % 2 = 0 then 'payment' else 'fee' end,
          'a', case when n = 11 then -999999999999 else n * 100 end, 'EUR', date '2026-11-01' + n / 3, 'provider-' || n,
          'payment-' || n, 'order-' || n, 'batch-' || n % 2, '', '', ''
        from generate_series(1, 11) n returning line_id, amount_minor, provider_reference
      ), numbered as (select line_id, replace(provider_reference, 'provider-', '')::int as n from l)
      insert into statement_line_sources (import_id, position, line_id)
      select ${first}::bigint, n + 10, line_id from numbered where n <= 6
      union all select ${second}::bigint, 30 - n, line_id from numbered where n >= 6`;
    await database`
      insert into statement_malformed (import_id, position, column_name, reason, raw)
      select ${first}::bigint, n, 'Betrag', '"Käse" is not a decimal number.', 'row ' || n from generate_series(20, 24) n
      union all select ${second}::bigint, n, '', 'The quotes are broken.', 'row ' || n from generate_series(1, 3) n`;
    await database`
      update statement_imports set status = 'imported', format = 'csv', format_version = 1, encoding = 'utf-8'
      where account_id = ${account}`;
  });

  const list = (query: string) => operator.good<Lines>("GET", `lines/?account_id=${account}&${query}`);
  const amounts = ({ lines }: Lines): readonly string[] => lines.map(({ amount }) => amount);

  test("come by day, page by page without a gap or a repetition, each with its files", async () => {
    const all = await list("");
    expect(all.lines.map(({ booked_on }) => booked_on)).toEqual(all.lines.map(({ booked_on }) => booked_on).toSorted());
    expect(all.lines).toHaveLength(11);
    const pages: Line[] = [];
    for (let query = "limit=4"; query !== ""; ) {
      const { lines, has_more } = await list(query);
      pages.push(...lines);
      const last = lines.at(-1);
      query = has_more ? `limit=4&since_day=${last?.booked_on}&since_id=${last?.line_id}` : "";
    }
    expect(pages).toEqual(all.lines);
    const both = all.lines.find(({ amount }) => amount === "6.00");
    expect(both?.sources).toEqual([
      { import_id: second, position: 24 },
      { import_id: first, position: 16 },
    ]);
  });

  test.each([
    ["from_date=2026-11-02&to_date=2026-11-02", ["3.00", "4.00", "5.00"]],
    ["kind=payment&to_date=2026-11-02", ["2.00", "4.00"]],
    ["reference=provider-7", ["7.00"]],
    ["reference=payment-7", ["7.00"]],
    ["reference=order-8", ["8.00"]],
    ["reference=batch-0", ["2.00", "4.00", "6.00", "8.00", "10.00"]],
    ["currency=EUR&min_amount=9.00", ["9.00", "10.00"]],
    ["currency=EUR&max_amount=-0.01", ["-9999999999.99"]],
    ["currency=CHF", []],
  ])("are filtered by %s", async (query, expected) => {
    expect(amounts(await list(query))).toEqual(expected);
  });

  test("the lines of one file: in its order, with their positions", async () => {
    const listed = await operator.good<Lines>("GET", `imports/${second}/lines/?limit=3`);
    expect(listed.lines.map(({ position, amount }) => [position, amount])).toEqual([
      [19, "-9999999999.99"],
      [20, "10.00"],
      [21, "9.00"],
    ]);
    expect(listed.has_more).toBe(true);
    const rest = await operator.good<Lines>("GET", `imports/${second}/lines/?since_position=21&kind=payment`);
    expect(amounts(rest)).toEqual(["8.00", "6.00"]);
  });

  test("malformed rows name their import and position, page by page", async () => {
    interface Rows {
      readonly malformed_rows: readonly { readonly import_id: number; readonly position: number }[];
      readonly has_more: boolean;
    }
    const path = `malformed-rows/?account_id=${account}`;
    const page = await operator.good<Rows>("GET", `${path}&limit=6`);
    expect(page.malformed_rows.map(({ import_id, position }) => [import_id, position])).toEqual([
      ...[20, 21, 22, 23, 24].map((position) => [first, position]),
      [second, 1],
    ]);
    expect(page.malformed_rows[0]).toMatchObject({
      column: "Betrag",
      reason: '"Käse" is not a decimal number.',
      raw: "row 20",
    });
    expect(page.malformed_rows[0]).toMatchObject({ reason_code: "no_number", reason_parameters: { text: "Käse" } });
    expect(page.has_more).toBe(true);
    const next = await operator.good<Rows>("GET", `${path}&since_import_id=${second}&since_position=1`);
    expect(next.malformed_rows.map(({ position }) => position)).toEqual([2, 3]);
    const own = await operator.good<Rows>("GET", `malformed-rows/?import_id=${second}`);
    expect(own.malformed_rows).toHaveLength(3);
  });

  test("half a cursor, or an amount without a currency: refused", async () => {
    for (const query of ["since_id=3", "since_day=2026-11-01", "min_amount=1.00", "currency=EUR&min_amount=1.001"])
      await operator.refused("invalid_request", "GET", `lines/?account_id=${account}&${query}`);
    await operator.refused("invalid_request", "GET", "malformed-rows/?since_position=1");
    await operator.refused("invalid_request", "GET", "lines/");
  });

  test("a withdrawn import: its lines are omitted, and it cannot be released", async () => {
    const reason = { body: { reason: "The file of another restaurant." } };
    await operator.good("POST", `imports/${first}/withdraw/`, reason);
    const withdrawn = await waitFor("the end of the withdrawal", async () => {
      const found = await operator.good<{ readonly status: string }>("GET", `imports/${first}/`);
      return found.status === "withdrawn" && found;
    });
    expect(withdrawn).toMatchObject({ status: "withdrawn", withdrawn: { by: operator.userId, ...reason.body } });
    expect((await list("")).lines).toHaveLength(6);
    expect((await operator.good<Lines>("GET", `imports/${first}/lines/`)).lines).toEqual([]);
    const { body } = await operator.refused("conflict", "POST", `imports/${first}/release/`, reason);
    expect(body.reason).toBe("import_withdrawn");
    await operator.refused("invalid_request", "POST", `imports/${second}/release/`, { body: { reason: " " } });
  });
});
