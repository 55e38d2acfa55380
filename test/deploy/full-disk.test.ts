/**
 * `npm start` on a small disk that becomes full while cashiers collect, and has space again later: without manual action,
 * nothing acknowledged is lost, and money is consistent.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { SandboxFacts } from "../../deploy/sandbox/facts.ts";
import { DISK_LIMITS } from "../../services/runtime/limits.ts";
import { cashierAt, collectAt, sandboxFacts } from "../support/demo-station.ts";
import { startPorts } from "../support/free-port.ts";
import { type Answer, type Refused, send } from "../support/http.ts";
import { logIn, type Person } from "../support/people.ts";
import { isRunning, type RunningProgram, runProgram } from "../support/running-program.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { IS_UP, startInstallation } from "../support/start-installation.ts";

const SERVERS = join(import.meta.dirname, "programs", "servers.ts");
const MEGABYTE = 1_024 ** 2;
/** The database and the streams use about 50 MB of this disk. */
const disk = mountSmallDisk("full-disk", 400);
const RESERVE_MB = 160;
const TEST_MS = 400_000;
const WAIT = { timeout: 120_000, interval: 100 };
/** A gateway that hangs never answers; a gateway on a busy machine answers slowly. */
const ANSWER_MS = 5_000;

/** The codes that a request may get while the disk is full: it was not carried out, or its outcome is unknown. */
const TRUE_CODES = ["storage_low", "unavailable", "replica_stale", "busy"];

let program: RunningProgram;
/** Ends the remaining collections when the tests have ended. */
const over = new AbortController();
const dataDir = join(disk.path, "data");

beforeAll(async () => {
  const settings = {
    ...(await startPorts()),
    DATA_DIR: dataDir,
    DISK_RESERVE_MB: String(RESERVE_MB),
    LOG_MAX_MB: "20",
  };
  program = startInstallation(settings);
  await program.waitFor(IS_UP);
}, TEST_MS);

afterAll(async () => {
  over.abort();
  if (isRunning(program.pid)) program.process.kill("SIGKILL");
  await program.ended;
  disk.remove();
});

/** The disk in the answer of /readyz. */
async function diskDetail(): Promise<unknown> {
  const { body } = await send<{ dependencies: { disk: { detail: string | null } } }>(
    sandboxFacts(dataDir).baseUrl,
    "GET",
    "/readyz",
  );
  return body.dependencies.disk.detail;
}

const enroll = (): Promise<Answer<Refused>> =>
  send<Refused>(sandboxFacts(dataDir).baseUrl, "POST", "/api/payments/v1/devices/enroll/", {
    json: { code: "AAAAA-AAAAA" },
  });

function openSql(): postgres.Sql {
  const secrets = JSON.parse(readFileSync(join(dataDir, "secrets.json"), "utf8")) as Record<string, string>;
  const port = Number(readFileSync(join(dataDir, "postgres", "postmaster.pid"), "utf8").split("\n")[3]);
  return postgres({
    host: "127.0.0.1",
    port,
    user: "postgres",
    password: secrets["postgres_password"] ?? "",
    database: "device_payments",
    max: 1,
    onnotice: () => undefined,
  });
}

/** Makes PostgreSQL need new space: a segment of its log has 16 MB. On a full disk PostgreSQL then crashes. */
async function needSpace(): Promise<void> {
  const sql = openSql();
  try {
    for (let segment = 0; segment < 8; segment += 1) {
      await sql`select pg_logical_emit_message(false, 'test', repeat('x', 1000))`;
      await sql`select pg_switch_wal()`;
    }
  } catch {
    // PostgreSQL has crashed, or has ended.
  } finally {
    await sql.end({ timeout: 1 }).catch(() => undefined);
  }
}

const STATEMENTS = "/api/reconciliation/v1/";
const STATEMENT_LINES = 12_000;
/** A statement of the sandbox provider. */
const statementOf = (name: string): string => {
  const rows = Array.from(
    { length: STATEMENT_LINES },
    (_, line) => `${line + 1},${name}-${line},int_${line},,12.50,EUR,2026-03-01T10:00:00.000Z`,
  );
  return `line,payment_id,reference,account,amount,currency,paid_at\n${rows.join("\n")}\n`;
};

interface SlowBody {
  readonly pieces: AsyncIterable<string>;
  readonly bytes: number;
}

/** Uploads a statement in pieces. Returns the status or code of the answer, or the error that ended the connection. */
async function uploadSlowly(operator: Person, path: string, { pieces, bytes }: SlowBody): Promise<string> {
  const { hostname, port } = new URL(sandboxFacts(dataDir).baseUrl);
  const headers = { authorization: `Bearer ${operator.token}`, "content-length": bytes };
  const sending = httpRequest({ hostname, port, method: "POST", path: `${STATEMENTS}${path}`, headers });
  const answered = once(sending, "response").then(async ([response]: IncomingMessage[]) => {
    if (response === undefined) throw new Error("There is no answer.");
    const { code } = (await json(response)) as { code?: string };
    return code ?? String(response.statusCode);
  });
  const sent = pipeline(Readable.from(pieces), sending).then(() => answered);
  return await Promise.race([sent, answered]).catch((error: NodeJS.ErrnoException) => error.code ?? error.message);
}

interface Statements {
  /** Sends the rest of the second statement. */
  readonly goOn: () => void;
  /** Call it when there is space: expects that both statements are imported, and that their lines are stored once. */
  readonly complete: () => Promise<void>;
}

/** Begins the import of one statement and the upload of another one. */
async function beginStatements(facts: SandboxFacts): Promise<Statements> {
  const operator = await logIn(facts.baseUrl, "reconciliation", facts.operator);
  const account = { provider: "sandbox", reference: "full-disk", name: "Bar", mode: "test" };
  const { account_id } = await operator.good<{ account_id: number }>("POST", "accounts/", { body: account });
  const path = `accounts/${account_id}/imports/?file_name=a.csv&format=sandbox&encoding=utf-8`;
  const importOf = (importId: number) =>
    operator.good<{ status: string; lines_new: number }>("GET", `imports/${importId}/`);
  const upload = async (name: string): Promise<number> => {
    const sending = {
      token: operator.token,
      headers: { "content-type": "application/octet-stream" },
      body: statementOf(name),
    };
    const { status, body } = await send<{ import_id: number }>(facts.baseUrl, "POST", `${STATEMENTS}${path}`, sending);
    expect([200, 201], JSON.stringify(body)).toContain(status);
    return body.import_id;
  };
  const goingOn = Promise.withResolvers<void>();
  const second = statementOf("b");
  async function* pieces(): AsyncIterable<string> {
    yield second.slice(0, second.length / 2);
    await goingOn.promise;
    yield second.slice(second.length / 2);
  }
  const first = await upload("a");
  await vi.waitFor(async () => expect((await importOf(first)).status).toBe("importing"), { ...WAIT, interval: 10 });
  const body = { pieces: pieces(), bytes: Buffer.byteLength(second) };
  const uploaded = uploadSlowly(operator, path, body);
  return {
    goOn: goingOn.resolve,
    async complete() {
      const answer = await uploaded;
      process.stdout.write(`the upload that was under way: ${answer}\n`);
      expect(["201", "storage_low", "busy", "unavailable", "ECONNRESET", "EPIPE"]).toContain(answer);
      const sql = openSql();
      // The test does not wait half a minute for the lease of an attempt that PostgreSQL's crash has ended.
      await sql`update statement_imports set leased_until = now() where status = 'importing'`;
      const again = await vi.waitFor(() => upload("b"), WAIT);
      for (const importId of [first, again]) {
        await vi.waitFor(async () => {
          expect(await importOf(importId)).toMatchObject({ status: "imported", lines_new: STATEMENT_LINES });
        }, WAIT);
      }
      const [stored] = await sql`
        select count(*)::int as lines, count(distinct provider_reference)::int as payments from statement_lines
        where account_id = ${account_id}`;
      await sql.end();
      expect(stored).toEqual({ lines: 2 * STATEMENT_LINES, payments: 2 * STATEMENT_LINES });
    },
  };
}

interface Acknowledged {
  readonly orders: number[];
  readonly paid: number[];
  readonly codes: readonly string[];
}

/**
 * Collects cash at another station, one collection after the other, like a correct client: it repeats each step with the
 * same key until it succeeds. When stopped, it completes the current collection. Returns the orders that were acknowledged as
 * opened and as paid, and the error codes in between.
 */
function collectCash(): { hasPaid: () => boolean; stop: () => Promise<Acknowledged> } {
  const orders: number[] = [];
  const paid: number[] = [];
  const codes = new Set<string>();
  const facts = sandboxFacts(dataDir);
  const station = `stations/${facts.station.stationId}`;
  const stopped = new AbortController();
  const run = async (): Promise<void> => {
    const cashier = await cashierAt(facts, station);
    const done = async <T>(path: string, body: object): Promise<T> => {
      const key = randomUUID();
      while (!over.signal.aborted) {
        const answer = await cashier
          .call<T & { code?: string }>("POST", `${station}/${path}`, { body, key })
          .catch(() => {
            // The connection was cut; the same request is safe to repeat.
          });
        if (answer !== undefined && answer.status < 300) return answer.body;
        if (answer !== undefined) codes.add(String(answer.body.code));
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      throw new Error("The test has ended before this collection.");
    };
    while (!stopped.signal.aborted) {
      const lines = [{ name: "Tea", quantity: 1, unit_amount: "1.00" }];
      const { order_id: orderId } = await done<{ order_id: number }>("orders/", { lines });
      orders.push(orderId);
      const intent = await done<{ intent_id: number }>("intents/", { order_id: orderId, route: "cash" });
      await done(`intents/${intent.intent_id}/attest/`, {});
      paid.push(orderId);
    }
  };
  const running = run();
  return {
    hasPaid: () => paid.length > 0,
    async stop() {
      stopped.abort();
      await running;
      return { orders, paid, codes: [...codes] };
    },
  };
}

describe("npm start on a disk that becomes full", { timeout: TEST_MS }, () => {
  test("below the reserve: requests that can wait are refused with storage_low, and collections continue", async () => {
    disk.fill((RESERVE_MB - 40) * MEGABYTE);
    await vi.waitFor(async () => expect(await diskDetail()).toBe("disk_below_reserve"), WAIT);
    const facts = sandboxFacts(dataDir);
    const owner = await logIn(facts.baseUrl, "backoffice", facts.owner);
    // Each process checks the disk every second. The gateway may notice the fault before the registry does.
    const refused = await vi.waitFor(
      () => owner.refused("storage_low", "POST", "filials/", { body: { name: "Later" } }),
      { timeout: 2 * DISK_LIMITS.checkMs, interval: 100 },
    );
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await enroll()).body).toMatchObject({ code: "storage_low" });
    await collectAt(facts);
    expect(program.output()).toMatch(/less than DISK_RESERVE_MB: registrations, offers and webhooks wait/);
  });

  test("full to the last byte: its errors are correct, and it collects again automatically when there is space", async () => {
    disk.empty();
    await vi.waitFor(async () => expect(await diskDetail()).not.toBe("disk_below_reserve"), WAIT);
    const facts = sandboxFacts(dataDir);
    const before = await collectAt(facts);
    const collecting = collectCash();
    await vi.waitFor(() => expect(collecting.hasPaid()).toBe(true), WAIT);
    const statements = await beginStatements(facts);
    disk.fill(0);
    statements.goOn();
    await needSpace();
    await program.waitFor(/PostgreSQL .*\. The disk of \S+ has \d+ MB left, and 64 MB are needed to start it again/);
    // The end of PostgreSQL may have freed some kilobytes, enough for nats-server to store leases for many minutes.
    disk.fill(0);
    await program.waitFor(/nats-server cannot store messages now\. The disk of \S+ has \d+ MB left/);
    // Each answer is correct and in time.
    for (let round = 0; round < 5; round += 1) {
      const askedAtMs = performance.now();
      expect((await send(facts.baseUrl, "GET", "/healthz")).status).toBe(200);
      expect((await enroll()).status).toBe(503);
      expect(performance.now() - askedAtMs).toBeLessThan(ANSWER_MS);
    }
    expect(disk.freeBytes()).toBeLessThan(MEGABYTE);

    disk.empty();
    const spaceAtMs = performance.now();
    await program.waitFor(/nats-server is up again/);
    await program.waitFor(/PostgreSQL is up again/);
    const after = await collectAt(facts);
    process.stdout.write(
      `with space again: a whole collection is done after ${Math.round(performance.now() - spaceAtMs)} ms\n`,
    );
    const { orders, paid, codes } = await collecting.stop();
    expect(program.output()).not.toMatch(/abandoned/);
    // What the servers have written takes a part of the reserve, and imports wait for space above it.
    disk.grow(600);
    await statements.complete();

    const sql = openSql();
    const transactions = await sql<{ order_id: string }[]>`
      select order_id from transactions`;
    const paidInAll = await sql`select order_id from orders where status = 'paid'`;
    const known = await sql`select order_id from orders`;
    await sql.end();
    const ids = transactions.map((row) => Number(row.order_id));
    // Nothing acknowledged is lost, and no order is paid twice or without its transaction.
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(expect.arrayContaining([before, after, ...paid]));
    expect(new Set(ids)).toEqual(new Set(paidInAll.map((row) => Number(row["order_id"]))));
    expect(known.map((row) => Number(row["order_id"]))).toEqual(expect.arrayContaining(orders));
    expect(paid.length).toBeGreaterThan(0);
    expect(codes.filter((code) => !TRUE_CODES.includes(code))).toEqual([]);
  });

  test("a start on a full disk: it waits for space, and runs when there is some", async () => {
    program.process.kill("SIGTERM");
    expect(await program.ended).toBe(0);
    disk.fill(0);
    const env = { ...process.env, NATS_URL: "", DATABASE_URL: "", ...(await startPorts()), DATA_DIR: dataDir };
    program = runProgram(process.execPath, [SERVERS], { env });
    await program.waitFor(/The disk of \S+ has 0 MB left, and 64 MB are needed to start; waiting for space\./);
    disk.empty();
    await program.waitFor(/nats=\S+ database=\S+/);
    program.process.kill("SIGTERM");
    expect(await program.ended).toBe(0);
  });
});
