/** Requests with a session cookie: which pages may send one, and which cookie counts. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isOwnOrigin } from "../../gateway/http/caller-checks.ts";
import { send } from "../support/http.ts";
import { type GatewayWorld, startGatewayWorld } from "./gateway-world.ts";

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld({ trustedProxies: ["127.0.0.1"] });
  await world.openStation(1);
});
afterAll(() => world.stop());

describe("the origin of a page", () => {
  const isOwn = (origin: string, host: string, secure: boolean) => isOwnOrigin(origin, { host, secure });

  it("an encrypted connection: scheme, host and port must be equal", () => {
    expect(isOwn("https://pay.example", "pay.example", true)).toBe(true);
    expect(isOwn("http://pay.example", "pay.example", true)).toBe(false);
    expect(isOwn("https://pay.example:8443", "pay.example:8443", true)).toBe(true);
    expect(isOwn("https://pay.example:8443", "pay.example", true)).toBe(false);
    expect(isOwn("https://pay.example", "pay.example:443", true)).toBe(true);
  });

  it("a connection that may be behind an unknown proxy with TLS: origins with http and with https are accepted", () => {
    expect(isOwn("http://pay.example", "pay.example", false)).toBe(true);
    expect(isOwn("https://pay.example", "pay.example", false)).toBe(true);
    expect(isOwn("http://PAY.example:80", "pay.EXAMPLE", false)).toBe(true);
    expect(isOwn("http://pay.example:8080", "pay.example", false)).toBe(false);
    expect(isOwn("https://elsewhere.example", "pay.example", false)).toBe(false);
  });

  it("an invalid origin, or no valid host to compare it with: refused", () => {
    for (const origin of ["null", "", "pay.example", "file:///", "ftp://pay.example", "::"])
      expect(isOwn(origin, "pay.example", false), origin).toBe(false);
    for (const host of ["", " ", "a b"]) expect(isOwn("http://pay.example", host, false), host).toBe(false);
  });

  it("a trusted proxy that has ended TLS: origins with http are refused, those with https accepted", async () => {
    const cookie = `dp_session=${await world.session()}`;
    const host = new URL(world.baseUrl).host;
    // The request is a log-out, because every session may log out, and because the gateway alone can refuse it.
    const logOut = (origin: string, proto: string) =>
      send(world.baseUrl, "DELETE", "/api/cashier/v1/session/", {
        headers: { cookie, origin, "x-forwarded-proto": proto },
      });
    expect(await logOut(`http://${host}`, "https")).toMatchObject({ status: 403, body: { code: "csrf_refused" } });
    // The gateway accepts these two. The registry, which would answer them, does not run here.
    expect(await logOut(`https://${host}`, "https")).toMatchObject({ status: 503 });
    expect(await logOut(`http://${host}`, "http")).toMatchObject({ status: 503 });
  });
});

describe("a request with several session cookies", () => {
  const read = (cookie: string) =>
    send(world.baseUrl, "GET", "/api/cashier/v1/stations/1/lease/", { headers: { cookie } });

  it("different tokens: 401 in any order, also when one token is unknown", async () => {
    const [token, other] = [await world.session(), await world.session({ userId: 8, name: "Eve", sessionId: 2 })];
    const unknown = randomBytes(32).toString("base64url");
    expect((await read(`dp_session=${token}`)).status).toBe(200);
    for (const [first, second] of [
      [token, other],
      [other, token],
      [token, unknown],
      [unknown, token],
    ])
      expect(await read(`dp_session=${first}; dp_session=${second}`)).toMatchObject({
        status: 401,
        body: { code: "session_invalid" },
      });
  });

  it("one token: 200, also when it is sent twice, or beside an empty cookie or cookies of other names", async () => {
    const token = await world.session();
    for (const header of [
      `dp_session=${token}; dp_session=${token}`,
      `dp_session=; dp_session=${token}`,
      `theme=dark; dp_session=${token}; xdp_session=1`,
    ])
      expect((await read(header)).status, header).toBe(200);
  });
});
