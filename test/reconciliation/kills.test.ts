/**
 * The reconciliation process is killed at each row that an import, its runs and its withdrawal write, at each row of a
 * closing, and while it imports a large file. Afterwards another process continues, and the result equals that of an
 * undisturbed process: no row is missing, and no row is stored twice.
 * An ordinary run of the tests kills at few rows, which a seed chooses. RECONCILIATION_KILLS=all kills at all of them, as
 * `npm run soak` does.
 */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { Random } from "../chaos/random.ts";
import { type KillableProcess, startKillable } from "../money/killable-process.ts";
import { send } from "../support/http.ts";
import { addOperator, logIn, newOrder, type Person } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { writeRows } from "./closings/closing-world.ts";

const SEED = Number(process.env["RECONCILIATION_SEED"] ?? Math.floor(Date.now() / 86_400_000));
const isWhole = process.env["RECONCILIATION_KILLS"] === "all";
const KILLS = 1;
/** Kills while a file of several thousand rows is imported. */
const FILE_KILLS = isWhole ? 16 : 1;
const CLOSING_KILLS = 1;
const SOON = { timeout: 60_000, interval: 100 };
const WHOLE_MS = 900_000;
/** The lock at which the process waits to be killed. */
const KILL_LOCK = 4_711;
/** The tables that an import, a run, a withdrawal and a closing write, without their temporary tables. */
const TABLES = [
  "statement_imports",
  "statement_lines",
  "statement_line_sources",
  "statement_malformed",
  "statement_matches",
  "match_lines",
  "match_payments",
  "reconciliation_runs",
  "issues",
  "closing_keys",
  "period_closings",
  "closing_issues",
  "closing_imports",
];
const HEADER =
  "Zeitstempel,Transaktionscode,Transaktionsart,Status,Zahlungsmethode,Betrag,Währung,Trinkgeldbetrag,Gebührenbetrag,Auszahlungsdatum,Auszahlungs-ID,Beschreibung,Referenz";
const VERIFIER = join(import.meta.dirname, "..", "..", "clients", "verify-closing.mjs");
const today = new Date().toISOString().slice(0, 10);

let system: TestSystem;
let service: KillableProcess;
let owner: Person;
let cashier: Person;
let operator: Person;
let sql: postgres.Sql;
let lock: postgres.ReservedSql;

beforeAll(async () => {
  system = await startSystem({ services: ["registry", "settlement", "providers", "audit", "relay"] });
  service = await startKillable(["reconciliation"], {
    NATS_URL: system.nats.url,
    DATABASE_URL: system.database.url,
    CLOSING_SIGNING_KEY: Buffer.alloc(32, 7).toString("base64url"),
  });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  operator = await addOperator(system.baseUrl, owner);
  sql = postgres(system.database.url, { max: 2, onnotice: () => undefined });
  lock = await sql.reserve();
  await countWrites();
});
afterAll(async () => {
  lock.release();
  await sql.end();
  await service.kill9();
  await system.stop();
});

/** Counts each written row as a step. At the step in `kill_at` the writer waits for the lock that this file holds. */
async function countWrites(): Promise<void> {
  await lock`select pg_advisory_lock(${KILL_LOCK})`;
  await sql.unsafe(`
    create sequence kill_steps;
    create table kill_at (step bigint);
    create function kill_point() returns trigger language plpgsql as $$
      declare
        this_step bigint := nextval('kill_steps');
      begin
        if exists (select from kill_at where step = this_step) then
          perform pg_advisory_xact_lock(${KILL_LOCK});
        end if;
        return coalesce(new, old);
      end $$;`);
  for (const table of TABLES) {
    await sql.unsafe(
      `create trigger kill_point before insert or update or delete on ${table} for each row execute function kill_point()`,
    );
  }
}

const stepNow = async (): Promise<number> =>
  Number((await sql`select last_value as step from kill_steps`)[0]?.["step"]);

/** The run after a withdrawal writes rows too, so a step counted before its end may belong to that run. */
async function untilQuiet(): Promise<void> {
  await vi.waitFor(async () => {
    const busy = await sql`
      select account_id from wanted_runs union all select account_id from reconciliation_runs where status = 'running'`;
    expect([...busy]).toEqual([]);
  }, SOON);
}

interface Place {
  readonly accountId: number;
  readonly station: string;
}

/** A session takes at most 50 stations. */
const PLACES_OF_SESSION = 40;
let places = 0;

async function openPlace(): Promise<Place> {
  places += 1;
  if (places % PLACES_OF_SESSION === 0) cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const name = randomUUID();
  const { filial_id } = await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name } });
  const body = { filial_id, name, currency: "EUR" };
  const { station_id: stationId } = await owner.good<{ station_id: number }>("POST", "stations/", { body });
  const facts = { provider: "sumup", reference: name, name, mode: "test", filial_id, currency: "EUR" };
  const account = { body: { ...facts, settlement_delay_days: 0 } };
  const { account_id: accountId } = await operator.good<{ account_id: number }>("POST", "accounts/", account);
  const place = { accountId, station: `stations/${stationId}` };
  await cashier.good("POST", `${place.station}/lease/`);
  return place;
}

async function collect({ station }: Place, amount: string, reference: string): Promise<void> {
  const order_id = await newOrder(cashier, station, amount);
  const begun = { body: { order_id, route: "attested_terminal" } };
  const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, begun);
  await cashier.good("POST", `${station}/intents/${intent_id}/attest/`, { body: { reference } });
}

const sale = (code: string, amount: string, tip = "0.00", day = today): string =>
  `${day} 12:03:10,${code},Zahlung,Erfolgreich,POS,${amount},EUR,${tip},0.00,,,1 x Menü,`;

/** Repeats the request while its process is away, as an operator's program does. */
async function insist(
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Record<string, unknown>> {
  const request = { token: operator.token, headers: { "idempotency-key": randomUUID(), ...headers } };
  return vi.waitFor(async () => {
    const content = typeof body === "string" ? { body } : { json: body };
    const answer = await send(system.baseUrl, "POST", `/api/reconciliation/v1/${path}`, {
      ...request,
      ...content,
    });
    expect([200, 201, 202], answer.text).toContain(answer.status);
    return answer.body;
  }, SOON);
}

/** What is stored of the account: equal for two accounts with the same file and the same payments. */
async function stored(accountId: number): Promise<object> {
  const [lines] = await sql`
    select count(*)::int as lines, coalesce(sum(amount_minor), 0)::text as sum,
      (select count(*)::int from statement_line_sources s join statement_imports i using (import_id)
        where i.account_id = ${accountId}) as sources,
      (select count(*)::int from statement_malformed m join statement_imports i using (import_id)
        where i.account_id = ${accountId}) as malformed,
      (select string_agg(status, ' ' order by import_id) from statement_imports where account_id = ${accountId}) as imports,
      (select count(*)::int from statement_matches where account_id = ${accountId}) as matches,
      (select count(*)::int from reconciliation_runs where account_id = ${accountId} and status = 'running') as running
    from statement_lines where account_id = ${accountId}`;
  const issues = await sql`
    select kind, amount_minor::text as amount, status from issues where statement_account_id = ${accountId}
    order by kind, amount_minor, status`;
  return { ...lines, issues: issues.map(({ kind, amount, status }) => `${kind} ${amount} ${status}`) };
}

async function upload({ accountId }: Place, rows: readonly string[]): Promise<unknown> {
  const path = `accounts/${accountId}/imports/?file_name=sumup.csv&format=sumup&encoding=utf-8`;
  const file = `${[HEADER, ...rows].join("\n")}\n`;
  return (await insist(path, file, { "content-type": "application/octet-stream" }))["import_id"];
}

/** An import, its runs, and its withdrawal. `expected` is what must be stored after each of the two parts. */
async function scenario(expected?: readonly [object, object]): Promise<readonly [object, object]> {
  const place = await openPlace();
  await collect(place, "16.00", `A-${place.accountId}`);
  await collect(place, "9.00", `B-${place.accountId}`);
  const rows = [
    sale(`A-${place.accountId}`, "17.00", "1.00"),
    sale(`B-${place.accountId}`, "9.00"),
    sale(`C-${place.accountId}`, "5.00"),
    `${today} 12:03:10,D-${place.accountId},Zahlung,Erfolgreich,POS,three,EUR,0.00,0.00,,,,`,
  ];
  const importId = await upload(place, rows);
  const settled = async (want: object | undefined, isRight: (now: string) => boolean): Promise<object> =>
    vi.waitFor(async () => {
      const now = await stored(place.accountId);
      if (want === undefined) expect(isRight(JSON.stringify(now)), JSON.stringify(now)).toBe(true);
      else expect(now).toEqual(want);
      return now;
    }, SOON);
  const imported = await settled(expected?.[0], (now) => now.includes("tip 1700 open") && now.includes('"running":0'));
  await insist(`imports/${Number(importId)}/withdraw/`, { reason: "Of another restaurant." });
  const withdrawn = await settled(
    expected?.[1],
    (now) => now.includes('"imports":"withdrawn"') && now.includes('"running":0'),
  );
  return [imported, withdrawn];
}

const FIRST_ROWS = 400;
/** The second file begins with rows of the first one, and needs several batches. */
const OVERLAP_FROM = 200;
const LARGE_ROWS = 6_000;

const isReadable = (nth: number): boolean => nth % 97 !== 0;

/** Failed sales, which a run rejects without an issue. Some rows equal the row before, and some cannot be read. */
const manyRows = (from: number, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => {
    const nth = from + index;
    const amount = isReadable(nth) ? "5.00" : "three";
    return `${today} 12:03:10,N${nth % 50 === 1 ? nth - 1 : nth},Zahlung,Fehlgeschlagen,POS,${amount},EUR,0.00,0.00,,,1 x Menü,`;
  });

interface FileCounts {
  readonly lines_new: number;
  readonly lines_known: number;
  readonly malformed: number;
}
interface StoredFiles {
  readonly lines: number;
  readonly sources: number;
  readonly hash: string;
  readonly ofFirst: FileCounts;
  readonly ofSecond: FileCounts;
}

/** An account that has the first file. */
async function placeWithFile(): Promise<Place> {
  const place = await openPlace();
  await upload(place, manyRows(0, FIRST_ROWS));
  await importedFiles(place, 1);
  await untilQuiet();
  return place;
}

const importedFiles = ({ accountId }: Place, count: number): Promise<readonly FileCounts[]> =>
  vi.waitFor(async () => {
    const files = await sql<(FileCounts & { status: string })[]>`
      select status, lines_new::int, lines_known::int, malformed::int from statement_imports
      where account_id = ${accountId} order by import_id`;
    expect(files.map(({ status }) => status)).toEqual(Array.from({ length: count }, () => "imported"));
    return files;
  }, SOON);

async function bothImported(place: Place): Promise<StoredFiles> {
  const [ofFirst, ofSecond] = await importedFiles(place, 2);
  const [row] = await sql<Pick<StoredFiles, "lines" | "sources" | "hash">[]>`
    select count(*)::int as lines,
      md5(string_agg(concat_ws('|', provider_reference, ordinal, amount_minor), ',' order by provider_reference, ordinal)) as hash,
      (select count(*)::int from statement_line_sources s join statement_imports i using (import_id)
        where i.account_id = ${place.accountId}) as sources
    from statement_lines where account_id = ${place.accountId}`;
  if (row === undefined || ofFirst === undefined || ofSecond === undefined) throw new Error("Nothing is stored.");
  return { ...row, ofFirst, ofSecond };
}

interface Period {
  readonly state: string;
  readonly missing: readonly { readonly code: string }[];
}
/** The rows that a closing writes: the key, the closing, its issue and its file. */
const CLOSING_ROWS = 4;
const dayBefore = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

/** Returns the closing's id. */
async function close({ accountId }: Place, day: string): Promise<number> {
  const body = { account_id: accountId, kind: "day", from_date: day, reason: "All is decided." };
  return Number((await insist("periods/close/", body))["closing_id"]);
}

/** The script's result for the exported closing. */
async function verified(closingId: number): Promise<string> {
  const rows: string[] = [];
  let since = "";
  for (let hasMore = true; hasMore; ) {
    type Page = { rows: { key: string; row: string }[]; has_more: boolean };
    const page = await operator.good<Page>("GET", `closings/${closingId}/rows/?limit=500${since}`);
    rows.push(...page.rows.map(({ row }) => row));
    since = `&since_key=${page.rows.at(-1)?.key ?? ""}`;
    hasMore = page.has_more;
  }
  const { keys } = await operator.good<{ keys: { public_key: string }[] }>("GET", "closing-keys/");
  const folder = temporaryFolder("killed-closing");
  const file = join(folder.path, "closing.ndjson");
  writeRows(file, rows);
  try {
    return execFileSync(process.execPath, [VERIFIER, file, "--key", keys[0]?.public_key ?? ""], { encoding: "utf8" });
  } finally {
    folder.remove();
  }
}

/** Kills the process once it waits at the step, and starts another one. */
async function killAt(step: number, isStatementLost: boolean): Promise<void> {
  const waiting = async () => sql<{ pid: number }[]>`
    select pid from pg_locks where locktype = 'advisory' and objid = ${KILL_LOCK} and not granted`;
  const [backend] = await vi.waitFor(async () => {
    const found = await waiting();
    expect(found, `no process has come to step ${step}`).toHaveLength(1);
    return found;
  }, SOON);
  await service.kill9();
  // Either PostgreSQL has received the statement and carries it out, or the statement is lost with the process.
  if (isStatementLost) await sql`select pg_terminate_backend(${backend?.pid ?? 0})`;
  await sql`delete from kill_at`;
  await lock`select pg_advisory_unlock(${KILL_LOCK})`;
  await vi.waitFor(async () => expect(await waiting()).toHaveLength(0), SOON);
  await lock`select pg_advisory_lock(${KILL_LOCK})`;
  await startAnother();
}

async function startAnother(): Promise<void> {
  await sql.begin(async (tx) => {
    // The test does not wait half a minute for the lease of a process that is gone.
    await tx`set local session_replication_role = replica`;
    await tx`update statement_imports set leased_until = now() - interval '1 s' where status = 'importing'`;
  });
  await service.restart();
}

describe(`the process is killed at a step (RECONCILIATION_SEED=${SEED})`, () => {
  test("another process continues: every row is stored exactly once", { timeout: WHOLE_MS }, async () => {
    const firstStep = await stepNow();
    const expected = await scenario();
    await untilQuiet();
    const steps = (await stepNow()) - firstStep;
    process.stdout.write(`${steps} rows are written by an import, its runs and its withdrawal\n`);
    expect(steps).toBeGreaterThan(20);
    const random = new Random(SEED);
    const all = Array.from({ length: steps }, (_, index) => index + 1);
    const chosen = isWhole ? all : random.shuffled(all).slice(0, KILLS);
    for (const step of chosen) {
      const isStatementLost = random.pick([true, false]);
      await untilQuiet();
      await sql`insert into kill_at values (${(await stepNow()) + step})`;
      const killed = killAt(step, isStatementLost);
      const what = `step ${step} of ${steps}, ${isStatementLost ? "the statement is lost" : "the statement is carried out"}`;
      const [outcome] = await Promise.all([scenario(expected), killed]).catch((error: unknown) => {
        throw new Error(`Killed at ${what}: ${error instanceof Error ? error.message : String(error)}`, {
          cause: error,
        });
      });
      expect(outcome, what).toEqual(expected);
    }
  });

  test("a kill during the import of a file of several thousand rows: no row is lost, and none is stored twice", {
    timeout: 2 * WHOLE_MS,
  }, async () => {
    const undisturbed = await placeWithFile();
    const beganMs = performance.now();
    await upload(undisturbed, manyRows(OVERLAP_FROM, LARGE_ROWS));
    const expected = await bothImported(undisturbed);
    const tookMs = performance.now() - beganMs;
    const readable = Array.from({ length: OVERLAP_FROM + LARGE_ROWS }, (_, nth) => nth).filter(isReadable);
    expect(expected.lines).toBe(readable.length);
    const { lines_new: added, lines_known: known, malformed } = expected.ofSecond;
    const steps = added + (added + known) + malformed;
    const random = new Random(SEED);
    for (let nth = 0; nth < FILE_KILLS; nth += 1) {
      const place = await placeWithFile();
      // Kills at a written row, or at a random moment: while rows are read, at the commit, or afterwards.
      const isAtRow = (SEED + nth) % 2 === 0;
      const step = random.between(1, steps);
      const afterMs = random.between(0, Math.ceil(tookMs));
      if (isAtRow) await sql`insert into kill_at values (${(await stepNow()) + step})`;
      await upload(place, manyRows(OVERLAP_FROM, LARGE_ROWS));
      if (isAtRow) await killAt(step, random.pick([true, false]));
      else {
        await delay(afterMs);
        await service.kill9();
        await startAnother();
      }
      expect(await bothImported(place), isAtRow ? `row ${step} of ${steps}` : `after ${afterMs} ms`).toEqual(expected);
    }
  });

  test("a kill during the closing of a day: the day is closed once, as a whole, and its export is verified", {
    timeout: WHOLE_MS,
  }, async () => {
    const place = await openPlace();
    const days = Array.from({ length: 1 + CLOSING_ROWS }, (_, index) => dayBefore(10 + index));
    await upload(
      place,
      days.map((day, index) => sale(`E${index}-${place.accountId}`, "5.00", "0.00", day)),
    );
    const period = `periods/?account_id=${place.accountId}&from_date=${days.at(-1)}&to_date=${days[0]}`;
    const untilAll = (state: string, missing: readonly string[]): Promise<unknown> =>
      vi.waitFor(async () => {
        const { periods } = await operator.good<{ periods: Period[] }>("GET", period);
        expect(periods.map((one) => [one.state, one.missing.map(({ code }) => code)])).toEqual(
          days.map(() => [state, missing]),
        );
      }, SOON);
    await untilAll("open", ["issues_undecided"]);
    await sql`
      update issues set status = 'closed', resolved_at = now(), resolved_by = ${operator.userId}, reason = 'Dealt with.'
      where statement_account_id = ${place.accountId}`;
    await untilAll("ready", []);
    const [undisturbed = "", ...others] = days;
    const firstStep = await stepNow();
    const closings = [await close(place, undisturbed)];
    expect((await stepNow()) - firstStep).toBe(CLOSING_ROWS);
    const random = new Random(SEED);
    const steps = others.map((_, index) => index + 1);
    for (const step of isWhole ? steps : random.shuffled(steps).slice(0, CLOSING_KILLS)) {
      await sql`insert into kill_at values (${(await stepNow()) + step})`;
      const killed = killAt(step, random.pick([true, false]));
      const [closing] = await Promise.all([close(place, others[step - 1] ?? ""), killed]);
      closings.push(closing);
    }
    const [counts] = await sql`
      select count(*)::int as closings, sum((select count(*) from closing_issues i where i.closing_id = c.closing_id))::int as issues,
        sum((select count(*) from closing_imports i where i.closing_id = c.closing_id))::int as imports
      from period_closings c where account_id = ${place.accountId}`;
    expect(counts).toEqual({ closings: closings.length, issues: closings.length, imports: closings.length });
    for (const closing of closings) expect(await verified(closing)).toContain("1 lines, 1 issues");
  });
});
