/** Sessions: bearer tokens for programs, cookies for pages, and each API only for the people who may use it. */
import postgres from "postgres";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { linkedSessionsSchema } from "../../../gateway/api/login-links.ts";
import type { newSessionSchema, sessionSchema } from "../../../gateway/api/sessions.ts";
import { createLoginLink } from "../../../services/bus/messages/login-links.ts";
import { call } from "../../../services/bus/operation.ts";
import { type Refused, send } from "../../support/http.ts";
import { logIn } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type NewSession = z.infer<typeof newSessionSchema>;
type Session = z.infer<typeof sessionSchema>;

let system: TestSystem;

beforeAll(async () => {
  // A new gateway, whose throttles are unused.
  system = await sharedSystem({ claims: true });
});
afterAll(() => system.stop());

const open = (api: string, body: unknown, headers = {}) =>
  send<NewSession & Refused>(system.baseUrl, "POST", `/api/${api}/v1/session/`, { json: body, headers });

const current = (headers: Record<string, string>) =>
  send(system.baseUrl, "GET", "/api/cashier/v1/session/", { headers });

const withCookie = (token: string, headers: Record<string, string> = {}) => ({
  headers: { cookie: `theme=dark; dp_session=${token}`, ...headers },
});

describe("a log-in over HTTP", () => {
  it("the right password: the person, a token, and a cookie that no script can read and no other site can send", async () => {
    const answer = await open("cashier", system.cashier);
    expect(answer.status).toBe(200);
    const { token, user, expires_at } = answer.body;
    expect(user).toMatchObject({
      role: "cashier",
      permissions: ["payments.collect"],
      organization_id: system.sandbox.organizationId,
    });
    expect(Date.parse(expires_at)).toBeGreaterThan(Date.now() + 3_600_000);
    const [cookie, browserCookie] = answer.headers.getSetCookie();
    expect(cookie).toMatch(
      new RegExp(`^dp_session=${token}; Path=/api/cashier/; Max-Age=\\d+; HttpOnly; SameSite=Strict$`),
    );
    expect(browserCookie).toMatch(
      /^dp_browser=[\w-]{22}; Path=\/api\/cashier\/v1\/session\/; Max-Age=7776000; HttpOnly; SameSite=Strict$/,
    );
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  it("a wrong password and an unknown person: refused with the same answer", async () => {
    const wrong = await open("cashier", { ...system.cashier, password: "not the password" });
    const unknown = await open("cashier", { ...system.cashier, email: "unknown@sandbox.example" });
    for (const answer of [wrong, unknown]) {
      expect(answer).toMatchObject({ status: 401, body: { code: "login_failed" } });
      expect(answer.headers.get("set-cookie")).toBeNull();
    }
    expect({ ...wrong.body, request_id: "" }).toEqual({ ...unknown.body, request_id: "" });
  });

  it("an owner at the cashier's API, or a cashier at the back office's: refused", async () => {
    for (const [api, details] of [
      ["cashier", system.owner],
      ["backoffice", system.cashier],
    ] as const) {
      const answer = await open(api, details);
      expect(answer).toMatchObject({ status: 403, body: { code: "permission_denied" } });
      expect(answer.body).not.toHaveProperty("token");
      expect(answer.headers.get("set-cookie")).toBeNull();
    }
  });

  it("an incomplete body: refused", async () => {
    for (const body of [{}, { email: "" }, { ...system.cashier, remember: true }, { ...system.cashier, password: 1 }])
      expect(await open("cashier", body)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  });

  it("a page of another site: refused, so that it cannot log a person in with another account", async () => {
    for (const headers of [{ origin: "https://elsewhere.example" }, { "sec-fetch-site": "cross-site" }])
      expect(await open("cashier", system.cashier, headers)).toMatchObject({
        status: 403,
        body: { code: "csrf_refused" },
      });
  });
});

describe("the session of a person", () => {
  it("a read of the session: names its person", async () => {
    const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
    const session = await cashier.good<Session>("GET", "session/");
    expect(session).toEqual({
      expires_at: expect.any(String),
      user: expect.objectContaining({ user_id: cashier.userId }),
    });
  });

  it("a request without a token, or with a guessed one: refused", async () => {
    expect(await current({})).toMatchObject({ status: 401, body: { code: "session_missing" } });
    for (const headers of [
      { authorization: "Bearer nonsense" },
      { authorization: `Bearer ${"A".repeat(43)}` },
      { cookie: "dp_session=nonsense" },
    ] as Record<string, string>[])
      expect(await current(headers)).toMatchObject({ status: 401, body: { code: "session_invalid" } });
  });

  it("a log-out: the session ends everywhere at once, and the cookie is removed", async () => {
    const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
    const other = await logIn(system.baseUrl, "cashier", system.cashier);
    const answer = await cashier.call("DELETE", "session/");
    expect(answer.status).toBe(204);
    expect(answer.headers.get("set-cookie")).toMatch(
      /^dp_session=; Path=\/api\/cashier\/; Max-Age=0; HttpOnly; SameSite=Strict$/,
    );
    expect((await cashier.refused("session_invalid", "GET", "session/")).status).toBe(401);
    expect((await other.call("GET", "session/")).status).toBe(200);
  });
});

describe("the session cookie of a page", () => {
  it("a change: accepted only from pages of the service (CSRF)", async () => {
    const { token } = await logIn(system.baseUrl, "cashier", system.cashier);
    const lease = `/api/cashier/v1/stations/${system.sandbox.stations[0]?.stationId}/lease/`;
    const post = (headers: Record<string, string>) => send(system.baseUrl, "POST", lease, withCookie(token, headers));
    expect((await send(system.baseUrl, "GET", lease, withCookie(token))).status).toBe(200);
    expect((await post({ origin: system.baseUrl })).status).toBe(200);
    expect((await post({ "sec-fetch-site": "same-origin" })).status).toBe(200);
    const foreign = [
      { origin: "https://elsewhere.example" },
      { origin: "null" },
      { origin: system.baseUrl.replace(/:\d+$/, ":1") },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ] as Record<string, string>[];
    for (const headers of foreign)
      expect(await post(headers), JSON.stringify(headers)).toMatchObject({
        status: 403,
        body: { code: "csrf_refused" },
      });
  });

  it("a bearer token of a program: accepted with any origin, also beside a cookie", async () => {
    const { token } = await logIn(system.baseUrl, "cashier", system.cashier);
    const lease = `/api/cashier/v1/stations/${system.sandbox.stations[0]?.stationId}/lease/`;
    const headers = { authorization: `Bearer ${token}`, origin: "https://elsewhere.example" };
    for (const options of [{ headers }, withCookie(token, headers)])
      expect((await send(system.baseUrl, "POST", lease, options)).status).toBe(200);
  });
});

describe("guesses at a password, and the cookie of a browser", () => {
  it("guesses: throttled with a time to wait, except in a browser where the person has logged in before", async () => {
    const cookie = browserCookieOf(await open("backoffice", system.owner));
    const answers = [];
    for (let attempt = 0; attempt < 12; attempt += 1)
      answers.push(await open("backoffice", { ...system.owner, password: `guess number ${attempt}` }));
    const last = answers.at(-1);
    expect(last).toMatchObject({ status: 429, body: { code: "login_throttled" } });
    expect(Number(last?.headers.get("retry-after"))).toBeGreaterThan(0);
    // While the throttle is active, the gateway refuses the right password as well.
    expect(await open("backoffice", system.owner)).toMatchObject({ status: 429 });
    const again = await open("backoffice", system.owner, { cookie });
    expect(again.status).toBe(200);
    expect(browserCookieOf(again), "the cookie is renewed").toBe(cookie);
  });

  it("one browser of two people: its cookie has the tokens of both, and eight tokens at most", async () => {
    const first = browserCookieOf(await open("cashier", system.cashier));
    const others = Array.from({ length: 7 }, (_, index) => String(index).repeat(22));
    const cookie = ["theme=dark; dp_browser=", others.join("."), ".", first.replace("dp_browser=", "")].join("");
    const second = browserCookieOf(await open("cashier", system.cashier, { cookie }));
    expect(second).toBe([first, ...others].join("."));
    const third = browserCookieOf(
      await open("cashier", system.cashier, { cookie: second.replace(first, "dp_browser=x") }),
    );
    expect(third).toMatch(/^dp_browser=[\w-]{22}$/);
    const unknown = ["7".repeat(22), ...others];
    const fourth = browserCookieOf(
      await open("cashier", system.cashier, { cookie: `dp_browser=${unknown.join(".")}` }),
    );
    expect(fourth.split(".").slice(1)).toEqual(unknown.slice(0, 7));
    for (const broken of [
      `dp_browser=${"x".repeat(2_000)}`,
      "dp_browser=a.b",
      `${first}; dp_browser=${"1".repeat(22)}`,
    ])
      expect((await open("cashier", system.cashier, { cookie: broken })).status, broken).toBe(200);
  });

  it("the cookie of a browser: it is no session", async () => {
    const cookie = browserCookieOf(await open("cashier", system.cashier));
    expect(await current({ cookie })).toMatchObject({ status: 401, body: { code: "session_missing" } });
    expect(await open("cashier", { ...system.cashier, password: "wrong" }, { cookie })).toMatchObject({ status: 401 });
  });

  const browserCookieOf = ({ headers }: { readonly headers: Headers }): string =>
    headers.getSetCookie()[1]?.split(";")[0] as string;
});

describe("the link that `npm start` prints", () => {
  type Linked = z.infer<typeof linkedSessionsSchema> & Refused;
  const stationId = () => system.sandbox.stations[1]?.stationId ?? 0;
  const newLink = async (): Promise<string> => {
    const { organizationId } = system.sandbox;
    return (await call(system.bus.nc, createLoginLink, { organizationId, stationId: stationId() })).token;
  };
  const redeem = (token: string, headers: Record<string, string> = {}) =>
    send<Linked>(system.baseUrl, "POST", "/api/start/v1/session/", { json: { token }, headers });
  const expectNone = (answer: Awaited<ReturnType<typeof redeem>>) => {
    expect(answer).toMatchObject({ status: 404, body: { code: "not_found" } });
    expect(answer.headers.get("set-cookie")).toBeNull();
  };

  it("logs owner and cashier in side by side, each at the API of the role, and works once", async () => {
    const token = await newLink();
    const answer = await redeem(token);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.station_id).toBe(stationId());
    expect(answer.body.sessions.map(({ user }) => user.role)).toEqual(["owner", "cashier"]);
    const [owners = "", cashiers = "", none] = answer.headers.getSetCookie();
    expect(none).toBeUndefined();
    expect(owners).toMatch(
      /^dp_session=dps_[\w-]{43}; Path=\/api\/backoffice\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/,
    );
    expect(cashiers).toContain("; Path=/api/cashier/; ");
    const cookieOf = (cookie: string) => ({ cookie: cookie.split(";")[0] ?? "" });
    const read = (api: string, cookie: string) =>
      send(system.baseUrl, "GET", `/api/${api}/v1/session/`, { headers: cookieOf(cookie) });
    expect(await read("backoffice", owners)).toMatchObject({ status: 200, body: { user: { role: "owner" } } });
    expect(await read("cashier", cashiers)).toMatchObject({ status: 200, body: { user: { role: "cashier" } } });
    expectNone(await redeem(token));
  });

  it("used from another address: refused, and the link stays valid", async () => {
    const token = await newLink();
    expectNone(await redeem(token, { "x-forwarded-for": "203.0.113.7" }));
    expect((await redeem(token, { "x-forwarded-for": "::1" })).status).toBe(200);
  });

  it("a Host of another name, as from a proxy or by DNS rebinding: refused, and the link stays valid", async () => {
    const { port } = new URL(system.baseUrl);
    // `fetch` does not let a caller set `Host`.
    const redeemAt = async (token: string, headers: Record<string, string>) => {
      const url = `${system.baseUrl}/api/start/v1/session/`;
      const json = { ...headers, "content-type": "application/json" };
      const answer = await request(url, { method: "POST", headers: json, body: JSON.stringify({ token }) });
      await answer.body.dump();
      return [answer.statusCode, answer.headers["set-cookie"] !== undefined];
    };
    const token = await newLink();
    for (const host of [`pay.example:${port}`, "pay.example", `127.0.0.1.pay.example:${port}`, `10.0.0.1:${port}`]) {
      expect(await redeemAt(token, { host })).toEqual([404, false]);
      expect(await redeemAt(token, { host, origin: `http://${host}` })).toEqual([404, false]);
    }
    expect(await redeemAt(token, { host: `localhost:${port}` })).toEqual([200, true]);
    expect(await redeemAt(await newLink(), { host: `[::1]:${port}` })).toEqual([200, true]);
  });

  it("used from a page of another site, replaced by a newer one, expired, or guessed: refused", async () => {
    const token = await newLink();
    const foreign = await redeem(token, { origin: "https://elsewhere.example" });
    expect(foreign).toMatchObject({ status: 403, body: { code: "csrf_refused" } });
    const later = await newLink();
    expectNone(await redeem(token));
    const sql = postgres(system.database.url, { max: 1 });
    const { organizationId } = system.sandbox;
    const stored = await sql`select link_hash from login_links where organization_id = ${organizationId}`;
    expect(stored).toHaveLength(1);
    expect(JSON.stringify(stored)).not.toContain(later);
    await sql`update login_links set expires_at = now()`;
    await sql.end();
    expectNone(await redeem(later));
    expectNone(await redeem("dpl_guess"));
  });
});
