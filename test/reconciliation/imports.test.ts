/** Uploads of statement files through a real gateway, object store, service and database. */
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STATEMENT_FILE_BYTES } from "../../services/bus/messages/statement-imports.ts";
import { send } from "../support/http.ts";
import { addOperator, logIn, type Person } from "../support/people.ts";
import { addOrganization } from "../support/second-organization.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

const API = "/api/reconciliation/v1/";
const SAMPLES = join(import.meta.dirname, "samples");
const CAMT = readFileSync(join(SAMPLES, "camt", "statement-v08.xml"));

interface Import {
  readonly import_id: number;
  readonly status: string;
  readonly status_code: string | null;
  readonly sha256: string;
  readonly size_bytes: number;
  readonly read_bytes: number;
  readonly lines_new: number;
  readonly lines_known: number;
  readonly candidates: null | {
    readonly formats: readonly { name: string }[];
    readonly encodings: readonly { encoding: string }[];
    readonly refusal: null | { code: string };
  };
}

let system: TestSystem;
let operator: Person;
/** An operator of another organization. */
let stranger: Person;
let dripped: Promise<{ status: number | undefined; body: unknown; imports: unknown[] }>;

beforeAll(async () => {
  system = await sharedSystem();
  operator = await addOperator(system.baseUrl, await logIn(system.baseUrl, "backoffice", system.owner));
  const elsewhere = await logIn(system.baseUrl, "backoffice", (await addOrganization(system)).owner);
  stranger = await addOperator(system.baseUrl, elsewhere, "rita@elsewhere.example");
  dripped = drip(stranger);
  // A failure is reported by the test that awaits `dripped`, and not as an unhandled rejection.
  dripped.catch(() => undefined);
});
afterAll(() => system.stop());

async function addAccount(by = operator): Promise<number> {
  const body = { provider: "sandbox", reference: `acct-${randomUUID()}`, name: "Bar", mode: "test" };
  const { account_id: accountId } = await by.good<{ account_id: number }>("POST", "accounts/", { body });
  return accountId;
}

interface Wanted {
  readonly accountId: number;
  readonly content: Uint8Array | string;
  readonly declared?: string;
  readonly by?: Person;
}
const upload = ({ accountId, content, declared = "", by = operator }: Wanted) =>
  send<Import & { code?: string }>(
    system.baseUrl,
    "POST",
    `${API}accounts/${accountId}/imports/?file_name=statement${declared}`,
    { token: by.token, body: content, headers: { "content-type": "application/octet-stream" } },
  );
const SANDBOX = "&format=sandbox&encoding=utf-8";
const CAMT_053 = "&format=camt.053&encoding=utf-8";
const HEADER = "line,payment_id,reference,account,amount,currency,paid_at";

/** The sandbox provider's statement. Its rows name no account. */
const statement = (rows: number, seed = randomUUID()): string =>
  `${HEADER}\n${Array.from({ length: rows }, (_, index) => `${index + 1},${seed}-${index},int_${seed}-${index},,12.50,EUR,2026-11-01T10:00:00.000Z`).join("\n")}\n`;

const importOf = (importId: number): Promise<Import> => operator.good<Import>("GET", `imports/${importId}/`);
const untilEnded = (importId: number): Promise<Import> =>
  expect
    .poll(() => importOf(importId), { timeout: 20_000 })
    .toMatchObject({ status: expect.stringMatching(/^(imported|held|refused)$/) as string })
    .then(() => importOf(importId));

describe("an uploaded statement", () => {
  test("a declared format and encoding: it is imported, with its progress", async () => {
    const content = statement(3);
    const answer = await upload({ accountId: await addAccount(), content, declared: SANDBOX });
    expect(answer).toMatchObject({ status: 201, body: { status: "waiting", size_bytes: content.length } });
    expect(answer.body.sha256).toBe(createHash("sha256").update(content).digest("hex"));
    const ended = await untilEnded(answer.body.import_id);
    expect(ended).toMatchObject({ status: "imported", lines_new: 3, read_bytes: content.length, candidates: null });
  });

  test("no declaration: the detected format is offered, and the import begins once it is confirmed", async () => {
    const { status, body } = await upload({ accountId: await addAccount(), content: CAMT });
    expect({ status, body }).toMatchObject({ status: 201, body: { status: "needs_format" } });
    expect(body.candidates).toMatchObject({ formats: [{ name: "camt.053" }], refusal: null });
    const path = `imports/${body.import_id}/confirm/`;
    const confirmed = { format: "camt.053", encoding: "utf-8" };
    expect(await operator.good("POST", path, { body: confirmed })).toMatchObject({ format: "camt.053" });
    expect(await operator.good("POST", path, { body: confirmed }), "the same again").toMatchObject({
      candidates: null,
    });
    await operator.refused("conflict", "POST", path, { body: { format: "mt940", encoding: "utf-8" } });
    await untilEnded(body.import_id);
  });

  test.each([
    ["no bytes, declared", "", SANDBOX],
    ["no bytes, not declared", "", ""],
    ["white space alone, declared", " \n\n\t\r\n", SANDBOX],
    ["white space alone, not declared", " \n\n\t\r\n", ""],
  ])("an empty file, %s: refused in one sentence", async (_, content, declared) => {
    const { status, body } = await upload({ accountId: await addAccount(), content, declared });
    expect(status, JSON.stringify(body)).toBe(201);
    const status_detail = "The file is empty: download it from the provider again.";
    expect(await untilEnded(body.import_id)).toMatchObject({
      status: "refused",
      status_code: "empty_file",
      status_detail,
      candidates: null,
    });
  });

  test("a file with its header and no row: imported without a line", async () => {
    const { body } = await upload({ accountId: await addAccount(), content: HEADER, declared: SANDBOX });
    expect(await untilEnded(body.import_id)).toMatchObject({ status: "imported", lines_new: 0, malformed: 0 });
  });

  test("a file of an unknown kind: the answer gives the reason, and no format is guessed", async () => {
    const { body } = await upload({ accountId: await addAccount(), content: Buffer.from([0x25, 0, 0, 0, 7]) });
    expect(body).toMatchObject({ status: "needs_format", candidates: { formats: [], refusal: { code: "not_text" } } });
  });

  test.each([
    ["a format that does not exist", "&format=camt.099&encoding=utf-8"],
    ["a format without an encoding", "&format=camt.053"],
    ["mapped CSV without a mapping", "&format=csv&encoding=utf-8"],
  ])("%s: refused before it is stored", async (_, declared) => {
    const answer = await upload({ accountId: await addAccount(), content: statement(1), declared });
    expect(answer).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  });

  test("an account of another organization: 404 for an upload and for its import", async () => {
    const accountId = await addAccount();
    const answer = await upload({ accountId, content: statement(1), declared: SANDBOX, by: stranger });
    expect(answer).toMatchObject({ status: 404, body: { code: "not_found" } });
    const own = await upload({ accountId, content: statement(1), declared: SANDBOX });
    await stranger.refused("not_found", "GET", `imports/${own.body.import_id}/`);
    await stranger.refused("not_found", "POST", `imports/${own.body.import_id}/confirm/`, { body: {} });
  });

  test("a file of another format than declared: refused, and no row is stored", async () => {
    const { body } = await upload({ accountId: await addAccount(), content: "a,b\n1,2\n", declared: CAMT_053 });
    expect(await untilEnded(body.import_id)).toMatchObject({ status: "refused", lines_new: 0 });
  });
});

describe("the same file again", () => {
  test("the same bytes: 200 with the first import", async () => {
    const accountId = await addAccount();
    const content = statement(2);
    const first = await upload({ accountId, content, declared: SANDBOX });
    const again = await upload({ accountId, content, declared: SANDBOX });
    expect([first.status, again.status]).toEqual([201, 200]);
    expect(again.body.import_id).toBe(first.body.import_id);
  });

  test("eight uploads, four at a time: one import, and each line is stored once", async () => {
    const accountId = await addAccount();
    const content = statement(50);
    const answers = [];
    for (let turn = 0; turn < 2; turn += 1) {
      answers.push(
        ...(await Promise.all(Array.from({ length: 4 }, () => upload({ accountId, content, declared: SANDBOX })))),
      );
    }
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(new Set(answers.map(({ body }) => body.import_id)).size).toBe(1);
    expect(await untilEnded(answers[0]?.body.import_id ?? 0)).toMatchObject({ status: "imported", lines_new: 50 });
  });

  test("other bytes with the same rows and one more: only that row is a new line", async () => {
    const accountId = await addAccount();
    const content = statement(4);
    const first = await upload({ accountId, content, declared: SANDBOX });
    await untilEnded(first.body.import_id);
    const longer = content + statement(1).split("\n").slice(1).join("\n");
    const second = await upload({ accountId, content: longer, declared: SANDBOX });
    expect(await untilEnded(second.body.import_id)).toMatchObject({ lines_new: 1, lines_known: 4 });
  });
});

describe("a large upload", () => {
  test("many chunks: stored as it was sent, and read to its end", async () => {
    const content = statement(10_000);
    const answer = await upload({ accountId: await addAccount(), content, declared: SANDBOX });
    expect(answer.body.sha256).toBe(createHash("sha256").update(content).digest("hex"));
    expect(await untilEnded(answer.body.import_id)).toMatchObject({ status: "imported", lines_new: 10_000 });
  });

  test("one byte more than 2 GiB: refused before the body is sent", async () => {
    const { hostname, port } = new URL(system.baseUrl);
    const sending = httpRequest({
      hostname,
      port,
      method: "POST",
      path: `${API}accounts/${await addAccount()}/imports/?file_name=statement`,
      headers: { authorization: `Bearer ${operator.token}`, "content-length": STATEMENT_FILE_BYTES + 1 },
    });
    sending.on("error", () => undefined);
    sending.flushHeaders();
    const [response] = (await once(sending, "response")) as [IncomingMessage];
    expect([response.statusCode, await text(response)]).toEqual([413, expect.stringContaining("body_too_large")]);
    sending.destroy();
  });

  test("6 MiB: the connection stays open for the next request", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const path = `${API}accounts/${await addAccount()}/imports/?file_name=large${SANDBOX}`;
    // Its content does not matter here: the import soon refuses it.
    expect(await sendBy(agent, "POST", path, "a".repeat(6 * 1_024 * 1_024))).toEqual({
      status: 201,
      isSameConnection: false,
    });
    const startedAtMs = performance.now();
    expect(await sendBy(agent, "GET", `${API}imports/`)).toEqual({ status: 200, isSameConnection: true });
    expect(performance.now() - startedAtMs).toBeLessThan(5_000);
    agent.destroy();
  });

  test("a fifth upload of one organization at once: busy", async () => {
    const accountId = await addAccount();
    const slow = await Promise.all(Array.from({ length: 4 }, () => beginUpload(accountId)));
    try {
      await expect
        .poll(async () => {
          const { code } = (await upload({ accountId, content: statement(1), declared: SANDBOX })).body;
          // On a busy machine a slow upload may be refused instead.
          if (code === undefined) slow.push(await beginUpload(accountId));
          return code;
        })
        .toBe("busy");
      await expect.poll(() => slow.filter(({ isAnswered }) => !isAnswered()).length).toBe(4);
    } finally {
      for (const { sending } of slow) sending.destroy();
    }
    await expect
      .poll(async () => (await upload({ accountId, content: statement(1), declared: SANDBOX })).status)
      .toBe(201);
  });

  test("a client that sends a byte a second: the upload ends with an error, and no import is left", async () => {
    const { status, body, imports } = await dripped;
    expect({ status, body }).toMatchObject({ status: 408, body: { code: "request_timeout" } });
    expect(imports).toEqual([]);
  });

  test("a client that disconnects: no import is left", async () => {
    const accountId = await addAccount();
    const { sending } = await beginUpload(accountId);
    sending.destroy();
    const { imports } = await operator.good<{ imports: unknown[] }>("GET", `imports/?account_id=${accountId}`);
    expect(imports).toEqual([]);
  });
});

async function sendBy(agent: Agent, method: string, path: string, body?: string) {
  const sending = httpRequest(system.baseUrl + path, {
    method,
    agent,
    headers: { authorization: `Bearer ${operator.token}` },
  });
  sending.end(body);
  const [response] = (await once(sending, "response")) as [IncomingMessage];
  response.resume();
  await once(response, "end");
  return { status: response.statusCode, isSameConnection: sending.reusedSocket };
}

/**
 * Uploads a byte a second until the gateway answers, and then reads the imports of the account. The upload begins before the
 * tests, because it takes more than twenty seconds. It belongs to another organization, so that it does not count as one of
 * their uploads.
 */
async function drip(by: Person): Promise<{ status: number | undefined; body: unknown; imports: unknown[] }> {
  const accountId = await addAccount(by);
  const { sending } = await beginUpload(accountId, { firstBytes: 1, by });
  const dripping = setInterval(() => sending.write("a"), 1_000);
  try {
    const [response] = (await once(sending, "response")) as [IncomingMessage];
    const body: unknown = JSON.parse(await text(response));
    const { imports } = await by.good<{ imports: unknown[] }>("GET", `imports/?account_id=${accountId}`);
    return { status: response.statusCode, body, imports };
  } finally {
    clearInterval(dripping);
    sending.destroy();
  }
}

interface SlowUpload {
  readonly sending: ReturnType<typeof httpRequest>;
  readonly isAnswered: () => boolean;
}

/** Begins an upload of 8 MiB, and sends the first half megabyte of it, or `firstBytes`. */
async function beginUpload(accountId: number, { firstBytes = 512 * 1_024, by = operator } = {}): Promise<SlowUpload> {
  const { hostname, port } = new URL(system.baseUrl);
  const sending = httpRequest({
    hostname,
    port,
    method: "POST",
    path: `${API}accounts/${accountId}/imports/?file_name=slow${SANDBOX}`,
    headers: { authorization: `Bearer ${by.token}`, "content-length": 8 * 1_024 * 1_024 },
  });
  let answered = false;
  sending.on("response", () => {
    answered = true;
  });
  sending.on("error", () => {
    answered = true;
  });
  await new Promise<void>((resolve) => sending.write(Buffer.alloc(firstBytes, 0x61), () => resolve()));
  return { sending, isAnswered: () => answered };
}
