/** Imports at the same time, imports that are interrupted, and which one is next. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { withdrawImport } from "../../services/reconciliation/import-decisions.ts";
import { importNext } from "../../services/reconciliation/import-work.ts";
import { takeImport } from "../../services/reconciliation/sql/import-work.ts";
import { QUIET } from "../support/quiet-log.ts";
import { operator } from "./closings/closing-world.ts";
import { type ImportWorld, pausingFormat, startImportWorld, statementOf } from "./import-world.ts";

let world: ImportWorld;
beforeAll(async () => {
  world = await startImportWorld();
});
afterEach(() => world.requireWholeRows());
afterAll(() => world.stop());

describe("an interrupted import", () => {
  test("an error of its process: no line is stored, and the next process imports the file from the beginning", async () => {
    const accountId = await world.addAccount();
    const importId = await world.upload(accountId, statementOf([{ id: "a" }, { id: "b" }]));
    const { format, release } = pausingFormat();
    release(new Error("The process ends."));
    expect(await importNext(world.depsOf({ formatNamed: () => format }))).toBe(false);
    expect(String(world.failed.at(-1))).toContain("The process ends.");
    expect(await world.linesOf(accountId)).toEqual([]);
    expect(await importNext(world.depsOf()), "the lease has not passed").toBe(false);
    await world.database`update statement_imports set leased_until = now() where import_id = ${importId}`;
    expect(await importNext(world.depsOf())).toBe(true);
    expect(await world.factsOf(importId)).toMatchObject({ status: "imported", lines_new: 2 });
  });

  test("a stall during which another process takes over: the first process stores nothing more", async () => {
    const accountId = await world.addAccount();
    const importId = await world.upload(accountId, statementOf([{ id: "a" }, { id: "b" }]));
    const { format, reached, release } = pausingFormat();
    const stalled = importNext(world.depsOf({ formatNamed: () => format }));
    await reached;
    await world.database`update statement_imports set leased_until = now() where import_id = ${importId}`;
    expect(await importNext(world.depsOf())).toBe(true);
    release();
    expect(await stalled).toBe(true);
    expect(await world.factsOf(importId)).toMatchObject({ status: "imported", lines_new: 2, lines_known: 0 });
    expect(await world.linesOf(accountId)).toEqual(["a 1250", "b 1250"]);
  });
});

test("a withdrawal during the import: no line is stored, and the import is withdrawn", async () => {
  const accountId = await world.addAccount();
  const importId = await world.upload(accountId, statementOf([{ id: "a" }, { id: "b", amount: "none" }]));
  const { format, reached, release } = pausingFormat();
  const stalled = importNext(world.depsOf({ formatNamed: () => format }));
  await reached;
  const decision = { caller: operator(world), importId, reason: "Wrong file." };
  const underWay = new Set<Promise<void>>();
  await withdrawImport({ ...world, log: QUIET, underWay }, decision);
  await Promise.all(underWay);
  expect(await world.factsOf(importId)).toMatchObject({ status: "withdrawn" });
  release();
  expect(await stalled).toBe(true);
  expect(await world.factsOf(importId)).toMatchObject({ status: "withdrawn", lines_new: 0 });
  expect(await world.linesOf(accountId)).toEqual([]);
  expect(await world.database`select from statement_malformed where import_id = ${importId}`).toHaveLength(0);
});

test("200 files of five accounts at once, by four workers: each line is stored once", async () => {
  const accountIds = await Promise.all(Array.from({ length: 5 }, () => world.addAccount()));
  for (let nth = 0; nth < 200; nth += 1) {
    const ids = Array.from({ length: 20 }, (_, at) => ({ id: `p${Math.floor(nth / 5) * 10 + at}` }));
    await world.upload(accountIds[nth % 5] ?? 0, statementOf(ids));
  }
  const work = async (): Promise<void> => {
    while (await importNext(world.depsOf())) {
      // Repeats until no import waits.
    }
  };
  await Promise.all([work(), work(), work(), work()]);
  for (const accountId of accountIds) expect(await world.linesOf(accountId)).toHaveLength(410);
});

test("two imports of one account at once: each line is stored once", async () => {
  const accountId = await world.addAccount();
  const texts = [0, 1, 2, 3].map((from) =>
    statementOf(Array.from({ length: 40 }, (_, at) => ({ id: `p${from * 10 + at}` }))),
  );
  for (const text of texts) await world.upload(accountId, text);
  await Promise.all(texts.map(() => importNext(world.depsOf())));
  expect(await world.linesOf(accountId)).toHaveLength(70);
  const [sum] = await world.database<[{ new: number; known: number }]>`
    select sum(lines_new)::int as new, sum(lines_known)::int as known from statement_imports where account_id = ${accountId}`;
  expect(sum).toEqual({ new: 70, known: 90 });
});

describe("the next import", () => {
  const take = () => world.database.begin((tx) => takeImport(tx, { attempt: randomUUID(), leaseMs: 60_000 }));

  /** An organization with this many waiting files; returns its account. */
  async function addOrganization(name: string, waiting: number): Promise<number> {
    const accountId = await world.addAccount(await world.addOrganization(name));
    for (let nth = 0; nth < waiting; nth += 1) await world.upload(accountId, statementOf([{ id: `${nth}` }]));
    return accountId;
  }
  async function importAll(): Promise<void> {
    await world.database`update statement_imports set leased_until = now() where status = 'importing'`;
    while (await importNext(world.depsOf())) {
      // Repeats until no import is left for the other tests.
    }
  }

  test("belongs to the organization with the fewest running imports, however many imports of another one wait", async () => {
    const busy = await addOrganization("Trattoria", 3);
    const other = await addOrganization("Pizzeria", 1);
    const taken = [await take(), await take(), await take(), await take(), await take()];
    expect(taken.map((row) => row?.account_id)).toEqual([busy, other, busy, busy, undefined]);
    await importAll();
  });

  test("belongs to a third organization, although two organizations with many files have a worker each", async () => {
    const busy = [await addOrganization("Ristorante", 6), await addOrganization("Enoteca", 6)];
    const first = [await take(), await take()];
    expect(first.map((row) => row?.account_id)).toEqual(busy);
    const third = await addOrganization("Gelateria", 1);
    const later: (number | undefined)[] = [];
    for (const ended of first) {
      await world.database`
        update statement_imports set status = 'imported', leased_by = null, leased_until = null, ended_at = now()
        where import_id = ${ended?.import_id ?? 0}`;
      later.push((await take())?.account_id);
    }
    expect(later).toContain(third);
    await importAll();
  });

  test("two processes at the same moment: each takes another organization's import", async () => {
    const both = [await addOrganization("Caffè", 3), await addOrganization("Taverna", 3)];
    const taken = await Promise.all([take(), take()]);
    expect(new Set(taken.map((row) => row?.account_id))).toEqual(new Set(both));
    await importAll();
  });
});
