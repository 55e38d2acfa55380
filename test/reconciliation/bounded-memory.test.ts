/**
 * Hostile files, many files at once, and clients that do not read: through the whole API, with the memory of the gateway
 * and of the services measured. RECONCILIATION_SIZE=whole uses the promised sizes, as `npm run soak` does.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { json } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { getGlobalDispatcher, Agent as Pool, setGlobalDispatcher } from "undici";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { paced } from "../../clients/reconciliation/paced.ts";
import { LIMITS } from "../../gateway/limits.ts";
import { STATEMENT_FILE_BYTES } from "../../services/bus/messages/statement-imports.ts";
import { addOperator, logIn, type Person } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { zipOf } from "./formats/zip-writer.ts";

const isWhole = process.env["RECONCILIATION_SIZE"] === "whole";
const MIB = 1_024 * 1_024;
const API = "/api/reconciliation/v1/";
const SOON = { timeout: 120_000, interval: 250 };
const TEST_MS = 600_000;
/** The memory of one process may grow by this: two batches, one chunk, and what V8 has not collected yet. */
const GROWTH_BYTES = 192 * MIB;
const LONG_LINE_BYTES = isWhole ? 1_024 * MIB : 48 * MIB;
const BOMB_BYTES = isWhole ? 1_024 * MIB : 256 * MIB;
/** Without a bound the gateway would hold most of an upload of the longer size. */
const FAST_BYTES = (isWhole ? 1_900 : 64) * MIB;
const LARGE_BYTES = isWhole ? STATEMENT_FILE_BYTES : 48 * MIB;
const LARGE_ROW_BYTES = 64 * 1_024;
const SLOW_BYTES_PER_MS = 16 * 1_024;
const IMPORTS = isWhole ? 200 : 24;
/** The gateway accepts this many uploads of one organization at once. */
const UPLOADS_AT_ONCE = 4;
/** Each line has about a kilobyte. Together they do not fit into the buffers of a connection whose client does not read. */
const EXPORTED_LINES = isWhole ? 12_000 : 6_000;
const LONG_REFERENCE = "r".repeat(400);

let system: TestSystem;
let operator: Person;

beforeAll(async () => {
  system = await startSystem();
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  operator = await addOperator(system.baseUrl, owner);
});
afterAll(() => system.stop());

/** The most memory that a process has had since the last `forgetPeaks`. */
const peakBytes = (pid: number): number => {
  const [, kib = "0"] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1_024;
};
const pids = (): Readonly<Record<"gateway" | "services", number>> => ({
  gateway: system.processes.gateway.pid(),
  services: system.processes.services.pid(),
});
/** The connections of `fetch` are new in each test: the server may have closed an idle one while this process made a large file. */
beforeEach(async () => {
  const used = getGlobalDispatcher();
  setGlobalDispatcher(new Pool());
  await used.close();
});
let before: Readonly<Record<string, number>> = {};
beforeEach(() => {
  for (const pid of Object.values(pids())) writeFileSync(`/proc/${pid}/clear_refs`, "5");
  before = Object.fromEntries(Object.entries(pids()).map(([name, pid]) => [name, peakBytes(pid)]));
});
const peaksInMib = () =>
  Object.fromEntries(Object.entries(pids()).map(([name, pid]) => [name, Math.round(peakBytes(pid) / MIB)]));
function expectBoundedMemory(moreBytes = 0): void {
  for (const [name, pid] of Object.entries(pids())) {
    const grownMib = Math.round((peakBytes(pid) - (before[name] ?? 0)) / MIB);
    expect(grownMib, `MiB that the ${name} needed more than before`).toBeLessThan((GROWTH_BYTES + moreBytes) / MIB);
  }
}

async function addAccount(facts: object = {}): Promise<number> {
  const body = { provider: "sandbox", reference: `acct-${randomUUID()}`, name: "Bar", mode: "test", ...facts };
  return (await operator.good<{ account_id: number }>("POST", "accounts/", { body })).account_id;
}

interface Import {
  readonly import_id: number;
  readonly status: string;
  readonly status_code: string | null;
  readonly status_detail: string | null;
  readonly lines_new: number;
  readonly malformed: number;
  readonly read_bytes: number;
}
const importOf = (importId: number): Promise<Import> => operator.good<Import>("GET", `imports/${importId}/`);
const untilEnded = (importId: number): Promise<Import> =>
  vi.waitFor(async () => {
    const found = await importOf(importId);
    expect(["imported", "held", "refused"], JSON.stringify(found)).toContain(found.status);
    return found;
  }, SOON);

interface File {
  readonly bytes: number;
  readonly content: Iterable<Buffer>;
}
const whole = (content: Buffer | string): File => ({
  bytes: Buffer.byteLength(content),
  content: [Buffer.from(content)],
});

/** Makes the body while it sends it, so that the test does not hold it either, and at the pace of the command-line client. */
async function upload(accountId: number, format: string, file: File): Promise<Import> {
  const { status, body } = await tryUpload(accountId, format, { ...file, content: paced(file.content) });
  expect(status, JSON.stringify(body)).toBe(201);
  return body;
}

interface Sent {
  readonly bytes: number;
  readonly content: Iterable<Buffer> | AsyncIterable<Buffer>;
}
async function tryUpload(accountId: number, format: string, file: Sent): Promise<{ status: number; body: Import }> {
  const { hostname, port } = new URL(system.baseUrl);
  const declared = `file_name=statement&format=${format}&encoding=utf-8`;
  // A fresh connection: the server may have closed an idle one while this process made a large file. It stays open
  // (`keepAlive`): the client might notice the end of another connection before it has sent everything.
  const agent = new Agent({ keepAlive: true });
  const sending = httpRequest({
    agent,
    hostname,
    port,
    method: "POST",
    path: `${API}accounts/${accountId}/imports/?${declared}`,
    headers: { authorization: `Bearer ${operator.token}`, "content-length": file.bytes },
  });
  const answered = once(sending, "response");
  try {
    await pipeline(Readable.from(file.content), sending);
    const [response] = (await answered) as [IncomingMessage];
    return { status: response.statusCode ?? 0, body: (await json(response)) as Import };
  } finally {
    agent.destroy();
  }
}

function* repeated(text: string, bytes: number): Iterable<Buffer> {
  const piece = Buffer.from(text.repeat(Math.ceil(MIB / text.length)));
  for (let left = bytes; left > 0; left -= piece.length) yield piece.subarray(0, Math.min(left, piece.length));
}

const CAMT = readFileSync(new URL("samples/camt/statement-v08.xml", import.meta.url), "utf8");
const HEADER = "line,payment_id,reference,account,amount,currency,paid_at";
const row = (line: number, seed: string, on = "2026-11-01"): string =>
  `${line},${seed}-${line},int_${seed}-${line},,12.50,EUR,${on}T10:00:00.000Z`;
const statement = (lines: number, seed: string = randomUUID()): string =>
  `${HEADER}\n${Array.from({ length: lines }, (_, index) => row(index + 1, seed)).join("\n")}\n`;

/** A message whose first id never ends. */
function* endlessText(): Iterable<Buffer> {
  const head = Buffer.from(CAMT.slice(0, CAMT.indexOf("<MsgId>") + "<MsgId>".length));
  yield head;
  yield* repeated("a", LONG_LINE_BYTES - head.length);
}

const entities = Array.from({ length: 9 }, (_, index) => `<!ENTITY e${index + 1} "${`&e${index};`.repeat(10)}">`).join(
  "",
);
const withDoctype = (inner: string): string => CAMT.replace(/\?>/, `?><!DOCTYPE d [<!ENTITY e0 "x">${inner}]>`);

describe("a hostile file", () => {
  test.each<[string, string, () => File, string]>([
    ["a DOCTYPE", "camt.053", () => whole(withDoctype("")), "doctype_refused"],
    ["an entity bomb", "camt.053", () => whole(withDoctype(entities).replace("EUR", "&e9;")), "doctype_refused"],
    [
      "a zip bomb",
      "camt.053",
      () => whole(zipOf([{ name: "a.xml", content: Buffer.alloc(BOMB_BYTES, 0x20) }])),
      "archive_refused",
    ],
    [
      "one endless line",
      "sandbox",
      () => ({ bytes: LONG_LINE_BYTES, content: repeated("a", LONG_LINE_BYTES) }),
      "line_too_long",
    ],
    ["an endless XML text", "camt.053", () => ({ bytes: LONG_LINE_BYTES, content: endlessText() }), "line_too_long"],
    ["NUL bytes", "sandbox", () => whole(`${HEADER}\n1,a\0b,,,1.00,EUR,2026-11-01T10:00:00.000Z\n`), "not_text"],
    ["a truncated file", "camt.053", () => whole(CAMT.slice(0, CAMT.length / 2)), "truncated"],
    [
      "half an archive",
      "camt.053",
      () => whole(zipOf([{ name: "a.xml", content: CAMT }]).subarray(0, 400)),
      "archive_refused",
    ],
  ])("%s: it is refused in one sentence with bounded memory", { timeout: TEST_MS }, async (_, format, file, code) => {
    const begun = await upload(await addAccount(), format, file());
    const ended = await untilEnded(begun.import_id);
    expect(ended).toMatchObject({ status: "refused", status_code: code, lines_new: 0 });
    expect(ended.status_detail).toMatch(/^[A-Z"][^\n]{10,300}[.]$/);
    expectBoundedMemory();
  });

  test("30 February: the row is malformed, and the rest is imported", async () => {
    const seed = randomUUID();
    const content = `${HEADER}\n${row(1, seed)}\n${row(2, seed, "2026-02-30")}\n${row(3, seed)}\n`;
    const { import_id: importId } = await upload(await addAccount(), "sandbox", whole(content));
    expect(await untilEnded(importId)).toMatchObject({ status: "imported", lines_new: 2, malformed: 1 });
  });
});

describe("an upload at the speed of memory", () => {
  test("a body sent without a pause: stored or refused, and memory is bounded", { timeout: TEST_MS }, async () => {
    const bytes = FAST_BYTES;
    const sent = tryUpload(await addAccount(), "sandbox", { bytes, content: repeated("a", bytes) });
    // The gateway closes the connection while the client still sends, so the error may be lost.
    const outcome = await sent.then(
      ({ status }) => status,
      ({ code }: NodeJS.ErrnoException) => code,
    );
    expect([201, 503, "ECONNRESET", "EPIPE"]).toContain(outcome);
    expectBoundedMemory(LIMITS.uploadHeldBytes.each);
  });
});

/** A file of this size: rows with long notes, then blank rows. Few lines, so that the bytes take most of the time. */
function* largeStatement(bytes: number): Iterable<Buffer> {
  const header = Buffer.from(`${HEADER},note\n`);
  yield header;
  let left = bytes - header.length;
  const seed = randomUUID();
  for (let line = 1; left >= LARGE_ROW_BYTES; line += 1) {
    yield Buffer.from(`${`${row(line, seed)},`.padEnd(LARGE_ROW_BYTES - 1, "a")}\n`);
    left -= LARGE_ROW_BYTES;
  }
  yield Buffer.alloc(left, "\n");
}

/** Sends slowly enough for a machine with other work to store it: the gateway refuses what comes faster. */
async function* slowly(pieces: Iterable<Buffer>): AsyncIterable<Buffer> {
  for (const piece of pieces) {
    yield piece;
    await delay(piece.length / SLOW_BYTES_PER_MS);
  }
}

describe("a large statement", () => {
  test(`${LARGE_BYTES / MIB} MiB: all lines are stored, and memory is bounded`, { timeout: 2 * TEST_MS }, async () => {
    const content = slowly(largeStatement(LARGE_BYTES));
    const { status, body: begun } = await tryUpload(await addAccount(), "sandbox", { bytes: LARGE_BYTES, content });
    expect(status, JSON.stringify(begun)).toBe(201);
    const done = await vi.waitFor(
      async () => {
        const found = await importOf(begun.import_id);
        expect(found.status).not.toMatch(/^(?:waiting|importing)$/);
        return found;
      },
      { timeout: TEST_MS, interval: 250 },
    );
    const lines = Math.floor((LARGE_BYTES - HEADER.length - ",note\n".length) / LARGE_ROW_BYTES);
    expect(done).toMatchObject({ status: "imported", lines_new: lines, malformed: 0, read_bytes: LARGE_BYTES });
    process.stdout.write(`peaks in MiB: ${JSON.stringify(peaksInMib())}\n`);
    expectBoundedMemory();
  });
});

describe("many files at once", () => {
  test(`${IMPORTS} files: each is imported once, and memory is bounded`, { timeout: TEST_MS }, async () => {
    const accountIds = await Promise.all(Array.from({ length: 8 }, () => addAccount()));
    const files = Array.from({ length: IMPORTS }, (_, nth) => ({ nth, accountId: accountIds[nth % 8] ?? 0 }));
    const importIds: number[] = [];
    const sendAll = async (): Promise<void> => {
      for (let file = files.pop(); file !== undefined; file = files.pop()) {
        const { import_id: importId } = await upload(file.accountId, "sandbox", whole(statement(200)));
        importIds.push(importId);
      }
    };
    await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, sendAll));
    for (const importId of importIds) {
      expect(await untilEnded(importId)).toMatchObject({ status: "imported", lines_new: 200 });
    }
    expectBoundedMemory();
  });
});

/**
 * Whether the connection from this port of the loopback interface is open at the gateway (proc_pid_net(5), state 01). Its client
 * does not see the end before it has read everything that was sent.
 */
function isOpenAtGateway(port = 0): boolean {
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync("/proc/self/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/));
  return rows.some(([, , remote, state]) => remote === address && state === "01");
}

describe.concurrent("an export of many lines", () => {
  let accountId: number;
  beforeAll(async () => {
    accountId = await addAccount();
    const { import_id: importId } = await upload(
      accountId,
      "sandbox",
      whole(statement(EXPORTED_LINES, `${randomUUID()}-${LONG_REFERENCE}`)),
    );
    await untilEnded(importId);
  }, TEST_MS);

  const path = (): string => `${API}exports/lines/?account_id=${accountId}&format=json`;
  function ask(): ReturnType<typeof connect> {
    const { hostname, port } = new URL(system.baseUrl);
    const socket = connect(Number(port), hostname);
    socket.write(`GET ${path()} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${operator.token}\r\n\r\n`);
    return socket;
  }

  test("a client that does not read: the gateway cuts it off, memory is bounded, and another client gets all lines", {
    timeout: TEST_MS,
  }, async () => {
    const idle = Array.from({ length: isWhole ? 4 : 2 }, ask);
    const closed = Promise.all(
      idle.map(async (socket) => {
        socket.on("error", () => undefined);
        // Without a listener the socket buffers only a few kilobytes. They show that the export has begun.
        await expect.poll(() => socket.readableLength, { timeout: 60_000 }).toBeGreaterThan(0);
        // Only a client that reads sees the end. So the test asks the kernel whether the gateway has closed the connection.
        await expect.poll(() => isOpenAtGateway(socket.localPort), { timeout: 90_000, interval: 200 }).toBe(false);
        let bytes = 0;
        socket.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
        });
        await once(socket.resume(), "close");
        return bytes;
      }),
    );
    const answer = await fetch(system.baseUrl + path(), { headers: { authorization: `Bearer ${operator.token}` } });
    const lines = (await answer.json()) as object[];
    expect(lines).toHaveLength(EXPORTED_LINES);
    const allBytes = JSON.stringify(lines).length;
    for (const bytes of await closed) expect(bytes).toBeLessThan(allBytes);
    expectBoundedMemory();
  });

  test("a slow client that keeps reading: it gets all lines", { timeout: TEST_MS }, async () => {
    const socket = ask();
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      socket.pause();
      setTimeout(() => socket.resume(), 20);
    });
    await vi.waitFor(() => expect(text.endsWith("\r\n0\r\n\r\n")).toBe(true), SOON);
    expect(text.match(/"line_id"/g)).toHaveLength(EXPORTED_LINES);
    socket.destroy();
  });
});
