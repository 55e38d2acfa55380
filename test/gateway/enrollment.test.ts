/** POST enroll over HTTP: a code is claimed once, and the answer to a refused code reveals nothing about it (I9, I10). */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, type Refused, send } from "../support/http.ts";
import { logIn, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

const ENROLL = "/api/payments/v1/devices/enroll/";

interface Enrollment {
  readonly credential: string;
  readonly scopes: readonly string[];
  readonly device: Record<string, unknown>;
}

let system: TestSystem;
let owner: Person;
let stationId: number;

beforeAll(async () => {
  // This machine is a configured proxy, so each request can name another client address.
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  stationId = system.sandbox.stations[0]?.stationId as number;
});
afterAll(() => system.stop());

let addresses = 0;
function claim<T = Refused>(code: unknown, address = `192.0.2.${(addresses += 1)}`): Promise<Answer<T>> {
  return send<T>(system.baseUrl, "POST", ENROLL, { json: { code }, headers: { "x-forwarded-for": address } });
}

async function register(kind: string): Promise<{ deviceId: number; code: string; codeId: number }> {
  const body = { station_id: stationId, name: `A ${kind}`, kind };
  const device = await owner.good<{ device_id: number }>("POST", "devices/", { body });
  const issued = await owner.good<{ code: string; enrollment_code: { code_id: number } }>(
    "POST",
    `devices/${device.device_id}/enrollment-codes/`,
    { body: {} },
  );
  return { deviceId: device.device_id, code: issued.code, codeId: issued.enrollment_code.code_id };
}

/** Changes the code's times in the database, because the shortest validity is a minute. */
async function letExpire({ codeId, deviceId }: { codeId: number; deviceId: number }): Promise<void> {
  const sql = postgres(system.database.url, { max: 1 });
  await sql`
    update enrollment_codes set created_at = now() - interval '1 hour', expires_at = now() - interval '1 second'
    where code_id = ${codeId}`;
  await sql.end();
  const path = `devices/${deviceId}/enrollment-codes/`;
  const { enrollment_codes } = await owner.good<{ enrollment_codes: object[] }>("GET", path);
  expect(enrollment_codes[0]).toMatchObject({ code_id: codeId, status: "expired" });
}

describe("the claim of a valid code", () => {
  it.each([
    ["smart_pos_companion", ["device:read", "device:heartbeat", "assignment:read", "assignment:report"]],
    ["customer_display", ["device:read", "device:heartbeat", "display:read"]],
  ])("a %s: gets its credential, scopes and snapshot, and the credential works at once", async (kind, scopes) => {
    const { deviceId, code } = await register(kind);
    const { status, body, headers } = await claim<Enrollment>(code);
    expect(status).toBe(201);
    expect(body.credential).toMatch(/^dp_[0-9a-f]{2}_[\w-]{43}$/);
    expect(body.scopes.toSorted()).toEqual(scopes.toSorted());
    expect(body.device).toMatchObject({ device_id: deviceId, kind, status: "active", blocked_reason: "" });
    expect(headers.get("cache-control")).toBe("no-store");
    const me = await send(system.baseUrl, "GET", "/api/payments/v1/devices/me/", { token: body.credential });
    expect(me.body).toEqual({ ...body.device, server_time: me.body.server_time });
  });

  it("a code in lower case, without its hyphen and with blanks: accepted", async () => {
    const { code } = await register("customer_display");
    expect((await claim(` ${code.replace("-", "").toLowerCase()} `)).status).toBe(201);
  });

  it("four claims of one code at once: exactly one succeeds", async () => {
    const { code } = await register("customer_display");
    const answers = await Promise.all([claim(code), claim(code), claim(code), claim(code)]);
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 404, 404, 404]);
  });
});

describe("the claim of an invalid code", () => {
  it("an unknown, spent, revoked, superseded, expired or malformed code: the same answer for all", async () => {
    const spent = await register("customer_display");
    await claim(spent.code);
    const revoked = await register("customer_display");
    await owner.good("POST", `enrollment-codes/${revoked.codeId}/revoke/`);
    const superseded = await register("customer_display");
    await owner.good("POST", `devices/${superseded.deviceId}/enrollment-codes/`, { body: {} });
    const expired = await register("customer_display");
    await letExpire(expired);
    const codes = [
      "7K3QX-9M2TB",
      spent.code,
      revoked.code,
      superseded.code,
      expired.code,
      "",
      "-",
      "UUUUU-UUUUU",
      "short",
      "x".repeat(10_000),
      "' or 1=1 --",
      "ü💳",
      "\u0000",
      "\ud800",
    ];
    const answers = await Promise.all(codes.map((code) => claim(code)));
    const shapes = answers.map(({ status, headers, body }) => {
      const { request_id: _, ...rest } = body;
      const compared = [...headers].filter(
        ([name]) => name !== "date" && name !== "x-request-id" && name !== "content-length",
      );
      return { status, compared, rest };
    });
    for (const shape of shapes) expect(shape).toEqual(shapes[0]);
    expect(answers[0]).toMatchObject({ status: 404, body: { code: "enrollment_code_invalid" } });
  });

  it("a code that is not text: 400", async () => {
    for (const code of [undefined, null, 7, {}, ["7K3QX-9M2TB"]]) {
      const answer = await claim(code);
      expect([answer.status, answer.body.errors?.[0]?.pointer]).toEqual([400, "/code"]);
    }
  });
});

describe("the throttle of enrollments by address", () => {
  it("ten claims are answered, then 429; another address is not affected", async () => {
    const statuses: number[] = [];
    for (let round = 0; round < 10; round += 1) statuses.push((await claim("7K3QX-9M2TB", "198.51.100.7")).status);
    expect(statuses).toEqual(Array(10).fill(404));
    const refused = await claim("7K3QX-9M2TB", "198.51.100.7");
    expect([refused.status, refused.body.code]).toEqual([429, "throttled"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(6);
    expect(refused.headers.get("ratelimit-policy")).toBe('"enroll";q=10;w=60');
    expect((await claim("7K3QX-9M2TB", "198.51.100.8")).status).toBe(404);
  });

  it("IPv6 addresses of one /64: count as one address", async () => {
    const statuses: number[] = [];
    for (let host = 0; host < 11; host += 1) {
      statuses.push((await claim("7K3QX-9M2TB", `2001:db8:0:1::${host.toString(16)}`)).status);
    }
    expect(statuses).toEqual([...Array(10).fill(404), 429]);
    expect((await claim("7K3QX-9M2TB", "2001:db8:0:2::1")).status).toBe(404);
  });

  it("several addresses in X-Forwarded-For: the one that the nearest proxy added counts", async () => {
    const statuses: number[] = [];
    for (let round = 0; round < 11; round += 1) {
      statuses.push((await claim("7K3QX-9M2TB", `203.0.113.${round}, 198.51.100.9, 127.0.0.1`)).status);
    }
    expect(statuses.at(-1)).toBe(429);
  });
});
