/**
 * Enrollment codes over HTTP: several devices with one code, and whether the answers to guesses differ (I10). Each try comes
 * from another address, because an address has ten tries a minute. An attacker may have many addresses.
 */
import { Agent, type IncomingMessage, request } from "node:http";
import { text as readText } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type GatewayProcess, startGatewayProcess } from "../gateway/gateway-process.ts";
import { type Answer, send } from "../support/http.ts";
import { logIn, type Person } from "../support/people.ts";
import { expectSameTimes, TIMING_TRIES } from "../support/rank-statistic.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { BEHIND_PROXY, exampleAddress } from "./chaos-world.ts";

/** `npm run soak` does 400. */
const ROUNDS = Number(process.env["CLAIM_ROUNDS"] ?? 15);
const CLAIMS_AT_ONCE = 4;
const ENROLL = "/api/payments/v1/devices/enroll/";
const CODES_PER_KIND = 8;
/** A station has up to sixteen devices. */
const DEVICES_PER_STATION = 12;
const REPEAT_AFTER_MS = 1_000;
/** Longer than a busy machine delays the gateway. */
const SERVED_MS = 10_000;

let system: TestSystem;
let second: GatewayProcess;
let owner: Person;
let tries = 0;
let devices = 0;
let stationId = 0;

beforeAll(async () => {
  system = await sharedSystem();
  second = await startGatewayProcess(system.nats.url, BEHIND_PROXY);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(async () => {
  await second.stop();
  await system.stop();
});

function nextAddress(): string {
  tries += 1;
  return exampleAddress(tries);
}

async function newCode(): Promise<{ deviceId: number; code: string; codeId: number }> {
  if (devices % DEVICES_PER_STATION === 0) {
    const body = { filial_id: system.sandbox.filialId, name: `Door ${devices}`, currency: "EUR" };
    ({ station_id: stationId } = await owner.good<{ station_id: number }>("POST", "stations/", { body }));
  }
  devices += 1;
  const body = { station_id: stationId, name: `Display ${devices}`, kind: "customer_display" };
  const { device_id: deviceId } = await owner.good<{ device_id: number }>("POST", "devices/", { body });
  const issued = await owner.good<{ code: string; enrollment_code: { code_id: number } }>(
    "POST",
    `devices/${deviceId}/enrollment-codes/`,
    { body: {} },
  );
  return { deviceId, code: issued.code, codeId: issued.enrollment_code.code_id };
}

function claim(baseUrl: string, code: string): Promise<Answer<{ credential: string; code: string }>> {
  return send(baseUrl, "POST", ENROLL, { json: { code }, headers: { "x-forwarded-for": nextAddress() } });
}

describe("one code, claimed by several devices at once through two gateways", () => {
  it(`${ROUNDS} rounds: exactly one device enrolls; its credential works and is the only one`, async () => {
    const sql = postgres(system.database.url, { max: 1 });
    for (let round = 0; round < ROUNDS; round += 1) {
      const { deviceId, code } = await newCode();
      const answers = await Promise.all(
        Array.from({ length: CLAIMS_AT_ONCE }, (_, index) =>
          claim(index % 2 === 0 ? system.baseUrl : second.baseUrl, code),
        ),
      );
      const winners = answers.filter(({ status }) => status === 201);
      const losers = answers.filter(({ status, body }) => status === 404 && body.code === "enrollment_code_invalid");
      expect([winners.length, losers.length]).toEqual([1, CLAIMS_AT_ONCE - 1]);
      const me = await send(system.baseUrl, "GET", "/api/payments/v1/devices/me/", {
        token: winners[0]?.body.credential ?? "",
      });
      expect(me).toMatchObject({ status: 200, body: { device_id: deviceId, status: "active" } });
      const credentials = await sql`select 1 from device_credentials where device_id = ${deviceId}`;
      expect(credentials).toHaveLength(1);
    }
    await sql.end();
  });
});

type Kind = "unknown" | "spent" | "expired" | "revoked" | "malformed";
/** The kinds in the contract whose times are measured here. test/registry measures the time of revoked codes. */
const TIMED: readonly Kind[] = ["unknown", "spent", "expired", "malformed"];

describe("codes that cannot be claimed", () => {
  let codes: Record<Kind, string[]>;
  /** One connection for all tries, so that the times do not include handshakes. */
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });

  beforeAll(async () => {
    codes = await codesOfEachKind();
  });
  afterAll(() => agent.destroy());

  /** Returns the received headers and body verbatim. An HTTP client would normalize them. */
  async function guess(code: string): Promise<{ status: number; rawHeaders: readonly string[]; text: string }> {
    const headers = { "content-type": "application/json", "x-forwarded-for": nextAddress() };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const sending = request(system.baseUrl + ENROLL, { agent, method: "POST", headers }, resolve);
      sending.on("error", reject);
      sending.end(JSON.stringify({ code }));
    });
    return { status: answer.statusCode ?? 0, rawHeaders: answer.rawHeaders, text: await readText(answer) };
  }

  /** On a busy machine the gateway may refuse a guess before it reads the code. A client then repeats it. */
  async function servedGuess(code: string): ReturnType<typeof guess> {
    const repeatUntilMs = performance.now() + SERVED_MS;
    for (;;) {
      const answer = await guess(code);
      if (answer.status !== 503 || performance.now() > repeatUntilMs) return answer;
      await delay(REPEAT_AFTER_MS);
    }
  }

  it("all kinds: the same bytes of headers and body, except the request id and the date", async () => {
    const seen = new Map<string, Kind>();
    for (const [kind, ofKind] of Object.entries(codes) as [Kind, string[]][]) {
      for (const code of ofKind) {
        const { status, rawHeaders, text } = await servedGuess(code);
        const id = rawHeaders[rawHeaders.indexOf("X-Request-Id") + 1] ?? "";
        const date = rawHeaders[rawHeaders.indexOf("Date") + 1] ?? "";
        expect(id).toMatch(/^\S{8,64}$/);
        // A caller can also see the order of the headers, so it is part of the comparison.
        const shape = JSON.stringify([status, rawHeaders, text]).replaceAll(id, "id").replaceAll(date, "date");
        seen.set(shape, kind);
      }
    }
    expect([...seen.keys()], "the different answers").toEqual([expect.stringContaining("enrollment_code_invalid")]);
  });

  it(`up to ${TIMING_TRIES} tries of each kind: the same response time for all kinds`, async () => {
    const statuses = new Set<number>();
    await expectSameTimes("refused codes over HTTP", TIMED, async (kind, nth) => {
      statuses.add((await guess(codes[kind][nth % CODES_PER_KIND] ?? "")).status);
    });
    expect([...statuses]).toEqual([404]);
  }, 180_000);
});

async function codesOfEachKind(): Promise<Record<Kind, string[]>> {
  const sql = postgres(system.database.url, { max: 1 });
  const codes: Record<Kind, string[]> = {
    unknown: Array.from({ length: CODES_PER_KIND }, (_, index) => `0000${index}-00000`),
    spent: [],
    expired: [],
    revoked: [],
    malformed: ["", "ABC", "UUUUU-UUUUU", "0000-00000", "00000-000000", "?????-?????", "ÄÄÄÄÄ-ÄÄÄÄÄ", "A".repeat(60)],
  };
  for (let index = 0; index < CODES_PER_KIND; index += 1) {
    const spent = await newCode();
    expect((await claim(system.baseUrl, spent.code)).status).toBe(201);
    codes.spent.push(spent.code);
    const expired = await newCode();
    await sql`update enrollment_codes set expires_at = now() - interval '1 second' where device_id = ${expired.deviceId}`;
    codes.expired.push(expired.code);
    const revoked = await newCode();
    await owner.good("POST", `enrollment-codes/${revoked.codeId}/revoke/`);
    codes.revoked.push(revoked.code);
  }
  await sql.end();
  return codes;
}
