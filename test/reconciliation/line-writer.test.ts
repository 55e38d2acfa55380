/** Lines of random files in batches of random size: the stored result equals that of a small model of whole files. */
import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { lineRecord } from "../../services/reconciliation/formats/records.ts";
import { LineWriter, writableLine } from "../../services/reconciliation/line-writer.ts";
import { searchByIndex } from "../../services/reconciliation/sql/store-lines.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";

let testDatabase: TestDatabase;
let database: Database;
let organizationId: number;
beforeAll(async () => {
  testDatabase = await cloneDatabase();
  database = openDatabase({ url: testDatabase.url, maxConnections: 2 });
  const [row] = await database<[{ id: number }]>`
    insert into organizations (name) values ('Osteria') returning organization_id as id`;
  organizationId = row.id;
});
afterAll(async () => {
  await closeDatabase(database);
  await testDatabase.drop();
});

/** The name of a row is its identity. There are few names, amounts and days, so that rows repeat in every way. */
interface Row {
  readonly name: string;
  readonly amountMinor: number;
  readonly day: number;
  readonly payout?: string;
}
interface File {
  readonly rows: readonly Row[];
  readonly batch: number;
}
const rowArbitrary: fc.Arbitrary<Row> = fc.record({
  name: fc.constantFrom("a", "b", "c", "d", "e", "f"),
  amountMinor: fc.constantFrom(100, 200, 300),
  day: fc.integer({ min: 1, max: 3 }),
});
const fileArbitrary: fc.Arbitrary<File> = fc.record({
  rows: fc.array(rowArbitrary, { minLength: 1, maxLength: 12 }),
  batch: fc.integer({ min: 1, max: 5 }),
});

const dayOf = (day: number): string => `2026-11-0${day}`;
const identityOf = (name: string): Buffer => createHash("sha256").update(name).digest();

/** What is stored: each line by `<name> <ordinal>` with its amount and day, and each file's sources and conflicts. */
interface Stored {
  readonly lines: Record<string, string>;
  readonly files: { readonly sources: string[]; readonly conflicts: number[]; readonly counts: string }[];
}

function modelOf(files: readonly File[]): Stored {
  const stored: Stored = { lines: {}, files: [] };
  for (const { rows } of files) {
    const numbered = rows.map((row, index) => ({ ...row, position: index + 1 }));
    const sources: string[] = [];
    const conflicts: number[] = [];
    let fresh = 0;
    for (const name of new Set(rows.map((row) => row.name))) {
      const same = numbered
        .filter((row) => row.name === name)
        .toSorted((a, b) => a.amountMinor - b.amountMinor || a.day - b.day || a.position - b.position);
      const ordinals = ordinalsOf(
        same.map((row) => row.amountMinor),
        knownOf(stored, name),
      );
      for (const [index, { amountMinor, day, position }] of same.entries()) {
        const key = `${name} ${ordinals[index]}`;
        const known = stored.lines[key];
        if (known !== undefined && Number(known.split(" ")[0]) !== amountMinor) {
          conflicts.push(position);
          continue;
        }
        if (known === undefined) fresh += 1;
        stored.lines[key] ??= `${amountMinor} ${dayOf(day)}`;
        sources.push(`${position} ${key}`);
      }
    }
    stored.files.push({
      sources: sources.toSorted(),
      conflicts: conflicts.toSorted((a, b) => a - b),
      counts: `${fresh} new, ${sources.length - fresh} known`,
    });
  }
  return stored;
}

/** The amounts of the account's lines of a name, by ordinal. */
const knownOf = ({ lines }: Stored, name: string): Map<number, number> =>
  new Map(
    Object.entries(lines)
      .map(([key, value]) => [...key.split(" "), Number(value.split(" ")[0])] as const)
      .filter(([of]) => of === name)
      .map(([, ordinal, amountMinor]) => [Number(ordinal), Number(amountMinor)] as const)
      .toSorted(([a], [b]) => a - b),
  );

/** A row with the amount of a known line is that line. Each other row contradicts a line, or is new. */
function ordinalsOf(amounts: readonly number[], known: Map<number, number>): readonly number[] {
  if (amounts.every((amount, index) => (known.get(index) ?? amount) === amount))
    return amounts.map((_, index) => index);
  let next = Math.max(...known.keys()) + 1;
  const take = (fits: (amount: number) => boolean): number | undefined => {
    const [ordinal] = [...known].find(([, amount]) => fits(amount)) ?? [];
    if (ordinal !== undefined) known.delete(ordinal);
    return ordinal;
  };
  const found = amounts.map((amount) => take((other) => other === amount));
  return found.map((ordinal) => ordinal ?? take(() => true) ?? next++);
}

async function openAccount(): Promise<number> {
  const [account] = await database<[{ account_id: number }]>`
    insert into statement_accounts (organization_id, provider, reference, name, mode)
    values (${organizationId}, gen_random_uuid()::text, 'acct', 'Account', 'test') returning account_id`;
  return account.account_id;
}

async function store(files: readonly File[]): Promise<Stored> {
  const accountId = await openAccount();
  const stored: Stored = { lines: {}, files: [] };
  for (const file of files) stored.files.push(await storeFile(accountId, file));
  const lines = await database<{ key: string; value: string }[]>`
    select provider_reference || ' ' || ordinal as key, amount_minor || ' ' || booked_on as value from statement_lines
    where account_id = ${accountId}`;
  for (const { key, value } of lines) stored.lines[key] = value;
  return stored;
}

async function storeFile(accountId: number, { rows, batch }: File): Promise<Stored["files"][number]> {
  const [file] = await database<[{ import_id: number }]>`
    insert into statement_imports (organization_id, account_id, sha256, file_name, size_bytes, uploaded_by)
    values (${organizationId}, ${accountId}, sha256(gen_random_uuid()::text::bytea), 'statement.csv', 1, 1) returning import_id`;
  const { import_id: importId } = file;
  const { linesNew, linesKnown } = await database.begin(async (tx) => {
    await searchByIndex(tx, true);
    const writer = new LineWriter(tx, { importId, organizationId, accountId });
    const lines = rows.map(({ name, amountMinor, day, payout }, index) => {
      const record = lineRecord({
        position: index + 1,
        kind: "payment",
        providerType: "payment",
        amountMinor: BigInt(amountMinor),
        currency: "EUR",
        bookedOn: dayOf(day),
        providerReference: name,
        payoutReference: payout,
      });
      if (record.type !== "line") throw new Error("The row is no line.");
      return writableLine(record.line, identityOf(name));
    });
    for (let from = 0; from < lines.length; from += batch) await writer.write(lines.slice(from, from + batch));
    return await writer.end();
  });
  const sources = await database<{ source: string }[]>`
    select s.position || ' ' || l.provider_reference || ' ' || l.ordinal as source
    from statement_line_sources s join statement_lines l using (line_id) where s.import_id = ${importId}`;
  const conflicts = await database<{ position: number }[]>`
    select position from statement_malformed where import_id = ${importId} order by position`;
  return {
    sources: sources.map(({ source }) => source).toSorted(),
    conflicts: conflicts.map(({ position }) => position),
    counts: `${linesNew} new, ${linesKnown} known`,
  };
}

test("a repeated reference: in either order of the files, each line is stored once", async () => {
  const [one, two] = [100, 200].map((amountMinor) => ({ name: "a", amountMinor, day: 1 })) as [Row, Row];
  const whole = { rows: [one, two], batch: 5 };
  for (const first of [one, two]) {
    const { lines, files } = await store([{ rows: [first], batch: 5 }, whole, { rows: [two], batch: 5 }]);
    expect(Object.values(lines).toSorted()).toEqual(["100 2026-11-01", "200 2026-11-01"]);
    expect(files.map(({ conflicts }) => conflicts)).toEqual([[], [], []]);
  }
});

test("rows of two files that contradict one line: each has its amount, so that each is an issue", async () => {
  const accountId = await openAccount();
  for (const amountMinor of [100, 200, 300])
    await storeFile(accountId, { rows: [{ name: "a", amountMinor, day: 1 }], batch: 1 });
  const rows = await database<{ raw: string }[]>`
    select m.raw from statement_malformed m join statement_imports i using (import_id) where i.account_id = ${accountId}
    order by m.import_id`;
  expect(rows.map(({ raw }) => raw)).toEqual(["a;payment;payment;200;EUR", "a;payment;payment;300;EUR"]);
});

test("a later file names the payout of lines without one: they get it, but for those of a closed period, until it is withdrawn", async () => {
  const accountId = await openAccount();
  const rows = ["open", "named before", "closed"].map((name) => ({
    name,
    amountMinor: 100,
    day: name === "closed" ? 3 : 1,
  }));
  const named = rows.map((row) => (row.name === "named before" ? { ...row, payout: "P-1" } : row));
  await storeFile(accountId, { rows: named, batch: 5 });
  await database`
    with k as (insert into closing_keys (key_id, public_key) values ('0123456789abcdef', sha256('')) returning key_id)
    insert into period_closings (organization_id, account_id, kind, from_date, to_date, through_line_id, statement, statement_hash, key_id,
      signature, closed_by, closed_by_name, closed_at, reason)
    select ${organizationId}, ${accountId}, 'day', ${dayOf(3)}, ${dayOf(3)}, 9999999, '{}', sha256(''), key_id, sha512(''), 1, 'Rosa', now(), 'Seen.'
    from k`;

  const storeWith = async (payout: string) => {
    const later = rows.map((row) => ({ ...row, payout }));
    expect(await storeFile(accountId, { rows: later, batch: 2 })).toMatchObject({
      conflicts: [],
      counts: "0 new, 3 known",
    });
    const lines = await database<{ line: string }[]>`
      select provider_reference || ': ' || payout_reference as line from statement_lines where account_id = ${accountId} order by line`;
    return lines.map(({ line }) => line);
  };
  for (const payout of ["P-2", "P-3"])
    expect(await storeWith(payout)).toEqual(["closed: ", "named before: P-1", "open: P-2"]);
  await database`
    update statement_imports set status = 'withdrawn', withdrawn_by = 1, withdrawn_at = now(), withdrawal_reason = 'Wrong column.'
    where account_id = ${accountId}`;
  expect(await storeWith("P-4")).toEqual(["closed: ", "named before: P-1", "open: P-4"]);
});

test("files one after another, in batches of any size: the stored result equals that of whole files", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fileArbitrary, { minLength: 1, maxLength: 3 }), async (files) => {
      expect(await store(files)).toEqual(modelOf(files));
    }),
    { numRuns: 60 },
  );
});
