/** What an import stores from a file, and what it refuses. */
import { hash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { NoCopyAnswersError } from "../../services/bus/direct-reader.ts";
import { FileLostError } from "../../services/bus/statement-files.ts";
import { adyenSettlementDetails } from "../../services/reconciliation/formats/adyen.ts";
import { CAMT_053 } from "../../services/reconciliation/formats/camt/camt.ts";
import { MT940 } from "../../services/reconciliation/formats/mt940.ts";
import { paypalTrr } from "../../services/reconciliation/formats/paypal/typed-report.ts";
import { type ImportDeps, importNext } from "../../services/reconciliation/import-work.ts";
import { createImport } from "../../services/reconciliation/imports.ts";
import { IMPORT_LIMITS } from "../../services/reconciliation/limits.ts";
import { removeLines } from "../../services/reconciliation/sql/import-work.ts";
import { confirmImportFormat, insertImport } from "../../services/reconciliation/sql/imports.ts";
import { currentRequestId, forRequest } from "../../services/runtime/log.ts";
import { operator } from "./closings/closing-world.ts";
import { oneChunk } from "./formats/chunks.ts";
import { zipOf } from "./formats/zip-writer.ts";
import { HEADER, type ImportWorld, startImportWorld, statementOf } from "./import-world.ts";

let world: ImportWorld;
beforeAll(async () => {
  world = await startImportWorld();
});
afterEach(() => world.requireWholeRows());
afterAll(() => world.stop());

describe("an import", () => {
  test("stores each line once, with its file and its days", async () => {
    const accountId = await world.addAccount();
    const facts = await world.importText(
      accountId,
      statementOf([{ id: "b" }, { id: "a", amount: "0.99", day: "2026-10-31" }]),
    );
    expect(facts).toMatchObject({ status: "imported", lines_new: 2, lines_known: 0, malformed: 0 });
    expect(facts.from_date).toBe("2026-10-31");
    expect(await world.linesOf(accountId)).toEqual(["a 99", "b 1250"]);
  });

  test("a file that overlaps another: only the new lines are added, in either order of the files", async () => {
    const [first, second] = [statementOf([{ id: "a" }, { id: "b" }]), statementOf([{ id: "b" }, { id: "c" }])];
    const [forwards, backwards] = [await world.addAccount(), await world.addAccount()];
    await world.importText(forwards, first);
    expect(await world.importText(forwards, second)).toMatchObject({ lines_new: 1, lines_known: 1 });
    await world.importText(backwards, second);
    await world.importText(backwards, first);
    expect(await world.linesOf(forwards)).toEqual(["a 1250", "b 1250", "c 1250"]);
    expect(await world.linesOf(backwards)).toEqual(await world.linesOf(forwards));
  });

  test("a file with two equal rows: both are lines, and a file that repeats them adds none of them", async () => {
    const accountId = await world.addAccount();
    await world.importText(accountId, statementOf([{ id: "twice" }, { id: "twice" }]));
    expect(
      await world.importText(accountId, statementOf([{ id: "twice" }, { id: "twice" }, { id: "new" }])),
    ).toMatchObject({
      lines_new: 1,
      lines_known: 2,
    });
    expect(await world.linesOf(accountId)).toEqual(["new 1250", "twice 1250", "twice 1250"]);
  });

  test("a known line with another amount: the line stays, and the row is listed with both amounts", async () => {
    const accountId = await world.addAccount();
    await world.importText(accountId, statementOf([{ id: "a" }]));
    const facts = await world.importText(accountId, statementOf([{ id: "a", amount: "12.40" }, { id: "b" }]));
    expect(facts).toMatchObject({ status: "imported", lines_new: 1, lines_known: 0, malformed: 1 });
    expect(await world.linesOf(accountId)).toEqual(["a 1250", "b 1250"]);
    const [row] = await world.database<[{ reason: string; position: number }]>`
      select m.reason, m.position from statement_malformed m join statement_imports using (import_id)
      where account_id = ${accountId}`;
    expect(row).toMatchObject({
      position: 2,
      reason: expect.stringMatching(
        /1250 EUR in minor units; this file has 1240 EUR\. If .* withdraw both, and upload this one again\.$/,
      ),
    });
  });

  test("a file with a bad row: the row is listed, and the others are stored", async () => {
    const accountId = await world.addAccount();
    const facts = await world.importText(
      accountId,
      statementOf([{ id: "a" }, { id: "b", amount: "12,50,1" }, { id: "c" }]),
    );
    expect(facts).toMatchObject({ status: "imported", lines_new: 2, malformed: 1, records: 3 });
    expect(await world.linesOf(accountId)).toEqual(["a 1250", "c 1250"]);
  });

  test("a time with an offset that no clock has: its line is stored without an instant, and the others are stored", async () => {
    const accountId = await world.addAccount();
    const text = statementOf([{ id: "a" }, { id: "b" }]).replace(/Z\n/, "+20:00\n");
    expect(text).toContain("+20:00");
    expect(await world.importText(accountId, text)).toMatchObject({ status: "imported", lines_new: 2, malformed: 0 });
    const rows = await world.database`
      select provider_reference, occurred_at is not null as has_instant from statement_lines where account_id = ${accountId}
      order by provider_reference`;
    expect(rows.map((row) => row["has_instant"])).toEqual([false, true]);
  });

  test("a file with malformed rows only: a run of the day of the import is requested", async () => {
    const accountId = await world.addAccount();
    const facts = await world.importText(accountId, statementOf([{ id: "a", amount: "12,50" }]));
    expect(facts).toMatchObject({ status: "imported", malformed: 1, from_date: null });
    const wanted = await world.database`
      select from_date::text as day from wanted_runs where account_id = ${accountId}`;
    expect(wanted.map((row) => row["day"])).toEqual([new Date().toISOString().slice(0, 10)]);
  });

  test("an MT940 without an entry: its days are covered", async () => {
    const text = ":20:A\n:25:acct_1\n:28C:1/1\n:60F:C260303EUR10,00\n:62F:C260310EUR10,00\n-\n";
    const facts = await world.importText(await world.addAccount(), text, world.depsOf({ formatNamed: () => MT940 }));
    expect(facts).toMatchObject({ status: "imported", lines_new: 0, from_date: "2026-03-04" });
  });

  test("a file with an unknown header: refused in one sentence, and no row is stored", async () => {
    const accountId = await world.addAccount();
    const facts = await world.importText(accountId, "date,amount\n2026-11-01,12.50\n");
    expect(facts).toMatchObject({ status: "refused", status_code: expect.stringMatching(/^\w+$/), lines_new: 0 });
    expect(facts.status_detail).toMatch(/^[A-Z].*\.$/);
    expect(await world.linesOf(accountId)).toEqual([]);
  });

  test("a file whose rows are mostly malformed: refused with the first reason, and no row is stored", async () => {
    const accountId = await world.addAccount();
    const [bad, good] = [IMPORT_LIMITS.mostlyMalformed + 1, 2];
    const lines = Array.from({ length: good }, (_, index) => ({ id: `good-${index}` }));
    const text = statementOf(lines) + "1,x,x,acct_1,many,EUR,2026-11-01\n".repeat(bad);
    const facts = await world.importText(accountId, text);
    expect(facts).toMatchObject({ status: "refused", status_code: "not_this_format", lines_new: 0 });
    expect(facts.status_detail).toMatch(
      /^More than 10000 rows .* of the first one, line 4, the reason is: "many" .*\.$/,
    );
    expect(await world.linesOf(accountId)).toEqual([]);
    const [{ rows }] = await world.database<[{ rows: number }]>`
      select count(*)::int as rows from statement_malformed join statement_imports using (import_id)
      where account_id = ${accountId}`;
    expect(rows).toBe(0);
  });

  test("a compressed file: the refusal names the compression", async () => {
    const facts = await world.importText(await world.addAccount(), gzipSync(statementOf([{ id: "a" }])));
    expect(facts).toMatchObject({ status: "refused", status_code: "not_text" });
    expect(facts.status_detail).toMatch(/gzip: unpack it/);
  });

  test("a file of another account: held, and imported by an operator's release", async () => {
    const accountId = await world.addAccount();
    const text = statementOf([{ id: "a", account: "acct_2" }]);
    const facts = await world.importText(accountId, text);
    expect(facts).toMatchObject({ status: "held", status_code: "other_account", lines_new: 0 });
    expect(await world.linesOf(accountId)).toEqual([]);
    await world.database`
      update statement_imports set status = 'waiting', released_by = 1, released_at = now(), release_reason = 'Renamed.'
      where account_id = ${accountId}`;
    expect(await importNext(world.depsOf())).toBe(true);
    expect(await world.linesOf(accountId)).toEqual(["a 1250"]);
  });

  test("text with tabs, backslashes, line breaks and NUL: stored verbatim", async () => {
    const accountId = await world.addAccount();
    const reference = "a\tb\\c\\N";
    await world.importText(accountId, `${HEADER}\n1,"${reference}","x\ny",acct_1,12.50,EUR,2026-11-01T10:00:00.000Z\n`);
    const [row] = await world.database<[{ provider_reference: string; merchant_reference: string }]>`
      select provider_reference, merchant_reference from statement_lines where account_id = ${accountId}`;
    expect(row).toEqual({ provider_reference: reference, merchant_reference: "x\ny" });
  });
});

test("an archive: the lines of all its files are stored, and a refusal names the file", async () => {
  const accountId = await world.addAccount();
  const [monday, tuesday] = [[{ id: "a" }], [{ id: "b" }, { id: "c" }]].map((rows) => ({ content: statementOf(rows) }));
  const archive = zipOf([
    { name: "monday.csv", content: "", ...monday },
    { name: "tuesday.csv", content: "", ...tuesday },
  ]);
  expect(await world.importText(accountId, archive)).toMatchObject({ status: "imported", lines_new: 3 });
  expect(await world.linesOf(accountId)).toEqual(["a 1250", "b 1250", "c 1250"]);
  const wrong = zipOf([{ name: "monday.csv", content: "x,y\n1,2\n" }]);
  const refused = await world.importText(accountId, wrong);
  expect(refused).toMatchObject({ status: "refused", status_detail: expect.stringContaining("monday.csv") as string });
});

test("an archive whose files overlap: the stored lines equal those of separate imports, each stored once", async () => {
  const files = [
    statementOf([{ id: "a" }, { id: "b" }, { id: "twice" }, { id: "twice" }]),
    statementOf([{ id: "twice" }, { id: "b" }, { id: "c" }, { id: "a", amount: "12.40" }]),
    statementOf([{ id: "c" }, { id: "twice" }, { id: "twice" }, { id: "twice" }]),
  ];
  const [together, apart] = [await world.addAccount(), await world.addAccount()];
  const archive = zipOf(files.map((content, index) => ({ name: `${index}.csv`, content })));
  expect(await world.importText(together, archive)).toMatchObject({
    status: "imported",
    lines_new: 6,
    lines_known: 5,
    malformed: 1,
  });
  for (const content of files) await world.importText(apart, content);
  expect(await world.linesOf(together)).toEqual([
    "a 1250",
    "b 1250",
    "c 1250",
    "twice 1250",
    "twice 1250",
    "twice 1250",
  ]);
  expect(await world.linesOf(together)).toEqual(await world.linesOf(apart));
});

test("a file appended to itself or another: each line is stored once, and equal lines of one file stay separate", async () => {
  const files = [
    statementOf([{ id: "a" }, { id: "twice" }, { id: "twice" }]),
    statementOf([{ id: "twice" }, { id: "a" }, { id: "b" }]),
  ];
  const [together, apart] = [await world.addAccount(), await world.addAccount()];
  const text = [files[0], files[0], `\ufeff${files[1]}`].join("");
  expect(await world.importText(together, text)).toMatchObject({ lines_new: 4, lines_known: 5, malformed: 0 });
  for (const content of files) await world.importText(apart, content);
  expect(await world.linesOf(together)).toEqual(["a 1250", "b 1250", "twice 1250", "twice 1250"]);
  expect(await world.linesOf(together)).toEqual(await world.linesOf(apart));
  await world.requireWholeRows();
});

test.each([
  ["camt.053", CAMT_053, "camt/statement-v02.xml", "NL91ABNA0417164300", /<Stmt>.*<\/Stmt>/s],
  ["MT940", MT940, "mt940/two-statements.sta", "12345678/0001234567", /^.*$/s],
  ["PayPal's report", paypalTrr, "paypal/trr.csv", "MERCHANT0001", /^.*$/s],
  ["Adyen's report", adyenSettlementDetails, "adyen/batch.csv", "BistroBasel", /^.*$/s],
])(
  "%s with a statement twice: its lines are stored once, and its totals hold",
  async (_what, format, path, reference, part) => {
    const text = readFileSync(new URL(`samples/${path}`, import.meta.url), "utf8");
    const deps = world.depsOf({ formatNamed: () => format });
    const importOf = async (content: string) => {
      const accountId = await world.addAccount();
      await world.database`update statement_accounts set reference = ${reference} where account_id = ${accountId}`;
      const { status, status_detail, lines_new, lines_known } = await world.importText(accountId, content, deps);
      return { facts: { status, status_detail, lines_new, lines_known }, lines: await world.linesOf(accountId) };
    };
    const once = await importOf(text);
    const count = once.lines.length;
    expect(count).toBeGreaterThan(0);
    const twice = await importOf(text.replace(part, (statement) => `${statement}\n${statement}`));
    expect(twice).toEqual({ facts: { ...once.facts, lines_known: count }, lines: once.lines });
    expect(twice.facts).toMatchObject({ status: "imported", lines_new: count });
  },
);

test("a file that the object store has lost: refused with the next step", async () => {
  const openFile = (): never => {
    throw new FileLostError("The file is not in the object store.");
  };
  const refused = await world.importText(
    await world.addAccount(),
    statementOf([{ id: "a" }]),
    world.depsOf({ openFile }),
  );
  expect(refused).toMatchObject({ status: "refused", status_code: "file_lost" });
});

test("the request of an upload, repeated after its import was refused: the same import", async () => {
  const accountId = await world.addAccount();
  const openFile = (): AsyncIterable<Uint8Array> => oneChunk(Buffer.of());
  const file = { fileName: "empty.csv", objectName: randomUUID(), sizeBytes: 0, sha256: hash("sha256", randomUUID()) };
  const request = { caller: operator(world), accountId, ...file };
  const create = () => createImport({ database: world.database, openFile }, request);
  const first = await create();
  expect(first).toMatchObject({ isNew: true, import: { status: "refused", statusCode: "empty_file" } });
  expect(await create()).toEqual(first);
  const other = await createImport({ database: world.database, openFile }, { ...request, objectName: randomUUID() });
  expect(other).toMatchObject({ isNew: true, import: { status: "refused" } });
  expect(other.import.importId).not.toBe(first.import.importId);
});

test("no copy of the file answers: its import waits again at once, however often, and no attempt is counted", async () => {
  const importId = await world.upload(await world.addAccount(), statementOf([{ id: "a" }]));
  const openFile = (): never => {
    throw new NoCopyAnswersError("OBJ_STATEMENTS");
  };
  for (let attempt = 0; attempt <= IMPORT_LIMITS.attempts; attempt += 1) {
    expect(await importNext(world.depsOf({ openFile }))).toBe(false);
    expect(world.failed.at(-1)).toBeInstanceOf(NoCopyAnswersError);
  }
  expect(await importNext(world.depsOf())).toBe(true);
  expect(await world.factsOf(importId)).toMatchObject({ status: "imported", lines_new: 1 });
});

describe("the log line of an import that could not be carried out", () => {
  const readAs = { format: "sandbox", formatVersion: 1, encoding: "utf-8", mappingId: null } as const;
  const uploadAs = async (as: typeof readAs | undefined): Promise<number> => {
    const { organizationId } = world;
    const accountId = await world.addAccount();
    const file = { sha256: "00".repeat(32), fileName: "statement.csv", sizeBytes: 1, objectName: `of-${accountId}` };
    const inserted = await insertImport(world.database, {
      ...file,
      organizationId,
      accountId,
      uploadedBy: 1,
      readAs: as,
      refusal: null,
    });
    return inserted?.import_id as number;
  };

  test.each([
    ["the upload", () => forRequest("the request", () => uploadAs(readAs))],
    [
      "the confirmation of its format",
      async () => {
        const importId = await forRequest("the upload", () => uploadAs(undefined));
        const key = { organizationId: world.organizationId, importId };
        await forRequest("the request", () => confirmImportFormat(world.database, key, readAs));
        return importId;
      },
    ],
  ])("an import that %s made wait: the log line has the id of that request", async (_, begin) => {
    const importId = await begin();
    const logged: unknown[] = [];
    const failures = {
      failed: (_error: unknown, facts: object): void => void logged.push({ ...facts, requestId: currentRequestId() }),
    };
    const openFile = (): never => {
      throw new NoCopyAnswersError("OBJ_STATEMENTS");
    };
    expect(await importNext(world.depsOf({ openFile, failures }))).toBe(false);
    expect(logged).toEqual([{ importId, attempts: 1, requestId: "the request" }]);
    await world.database`delete from statement_imports where import_id = ${importId}`;
  });
});

test("an import that has failed too often: refused, and not begun again", async () => {
  const importId = await world.upload(await world.addAccount(), statementOf([{ id: "a" }]));
  await world.database`update statement_imports set attempts = ${IMPORT_LIMITS.attempts} where import_id = ${importId}`;
  expect(await importNext(world.depsOf())).toBe(true);
  expect(await world.factsOf(importId)).toMatchObject({ status: "refused", status_code: "import_failed" });
});

test("a file that gives no row for a long time: its import keeps its lease", async () => {
  const importId = await world.upload(await world.addAccount(), "");
  const isLeased = async (): Promise<unknown> => {
    const [row] = await world.database<[{ is_leased: boolean }]>`
      select leased_until > now() as is_leased from statement_imports where import_id = ${importId}`;
    return row.is_leased;
  };
  const shortened: { silentMs: number } = { silentMs: IMPORT_LIMITS.silentMs };
  const seen: unknown[] = [];
  const openFile = async function* () {
    yield Buffer.from(statementOf([{ id: "a" }]));
    await world.database`update statement_imports set leased_until = now() - interval '1 s' where import_id = ${importId}`;
    yield Buffer.from("\n");
    seen.push(await isLeased());
    shortened.silentMs = 0;
    yield Buffer.from("\n");
    seen.push(await isLeased());
  };
  await importNext(Object.assign(shortened, world.depsOf({ openFile })));
  expect(seen).toEqual([false, true]);
  expect(await world.factsOf(importId)).toMatchObject({ status: "imported", lines_new: 1 });
});

test("a process that stops: its import waits again at once, and no attempt is counted", async () => {
  const importId = await world.upload(await world.addAccount(), statementOf([{ id: "a" }]));
  await importNext(world.depsOf({ stopping: AbortSignal.abort() }));
  const [row] =
    await world.database`select status, attempts, leased_by from statement_imports where import_id = ${importId}`;
  expect(row).toEqual({ status: "waiting", attempts: 0, leased_by: null });
  await importNext(world.depsOf());
  expect(await world.factsOf(importId)).toMatchObject({ status: "imported", lines_new: 1 });
});

describe("a full disk", () => {
  const stateOf = async (importId: number): Promise<object | undefined> => {
    const [row] =
      await world.database`select status, attempts, lines_new from statement_imports where import_id = ${importId}`;
    return row;
  };
  const untilSpace = (answers: readonly boolean[]): ImportDeps => {
    const rest = [...answers];
    return world.depsOf({ isShortOfSpace: () => rest.shift() ?? false });
  };

  test("no import begins, and a running import waits again without a counted attempt", async () => {
    const accountId = await world.addAccount();
    const importId = await world.upload(accountId, statementOf([{ id: "a" }]));
    const waiting = { status: "waiting", attempts: 0, lines_new: 0 };
    expect(await importNext(untilSpace([true]))).toBe(false);
    expect(await stateOf(importId)).toEqual(waiting);
    expect(await importNext(untilSpace([false, true]))).toBe(true);
    expect(await stateOf(importId)).toEqual(waiting);
    expect(await world.linesOf(accountId)).toEqual([]);
    expect(await importNext(untilSpace([]))).toBe(true);
    expect(await stateOf(importId)).toMatchObject({ status: "imported", lines_new: 1 });
  });

  test("an import for which PostgreSQL has no space: begins again after each failure", async () => {
    const accountId = await world.addAccount();
    const importId = await world.upload(accountId, statementOf([{ id: "a" }]));
    await world.database.unsafe(`
      create function no_space() returns trigger language plpgsql as $$
        begin raise exception 'could not extend file' using errcode = '53100'; end $$;
      create trigger no_space before insert on statement_lines for each row execute function no_space()`);
    try {
      for (let attempt = 0; attempt <= IMPORT_LIMITS.attempts; attempt += 1) {
        expect(await importNext(world.depsOf())).toBe(false);
        expect(String(world.failed.at(-1))).toContain("could not extend file");
        expect(await importNext(world.depsOf()), "it waits for its lease").toBe(false);
        await world.database`update statement_imports set leased_until = now() where import_id = ${importId}`;
      }
    } finally {
      await world.database`drop function no_space cascade`;
    }
    expect(await importNext(world.depsOf())).toBe(true);
    expect(await stateOf(importId)).toMatchObject({ status: "imported", lines_new: 1 });
    expect(await world.linesOf(accountId)).toEqual(["a 1250"]);
  });
});

test("a withdrawn file: its lines disappear, except those of another file", async () => {
  const accountId = await world.addAccount();
  const importId = await world.upload(accountId, statementOf([{ id: "a" }, { id: "b" }]));
  await importNext(world.depsOf());
  await world.importText(accountId, statementOf([{ id: "b" }, { id: "c" }]));
  await world.longDatabase.begin((tx) => removeLines(tx, importId));
  expect(await world.linesOf(accountId)).toEqual(["b 1250", "c 1250"]);
});
