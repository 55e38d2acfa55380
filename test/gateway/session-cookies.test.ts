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

describe("a page's origin", () => {
  const own = (origin: string, host: string, secure: boolean) => isOwnOrigin(origin, { host, secure });

  it("consists of scheme, host and port, and not of the host alone when the scheme is known", () => {
    expect(own("https://pay.example", "pay.example", true)).toBe(true);
    expect(own("http://pay.example", "pay.example", true)).toBe(false);
    expect(own("https://pay.example:8443", "pay.example:8443", true)).toBe(true);
    expect(own("https://pay.example:8443", "pay.example", true)).toBe(false);
    expect(own("https://pay.example", "pay.example:443", true)).toBe(true);
  });

  it("either scheme: accepted when a proxy outside the settings may have ended TLS", () => {
    expect(own("http://pay.example", "pay.example", false)).toBe(true);
    expect(own("https://pay.example", "pay.example", false)).toBe(true);
    expect(own("http://PAY.example:80", "pay.EXAMPLE", false)).toBe(true);
    expect(own("http://pay.example:8080", "pay.example", false)).toBe(false);
    expect(own("https://elsewhere.example", "pay.example", false)).toBe(false);
  });

  it("invalid, or without a host to compare it with: refused", () => {
    for (const origin of ["null", "", "pay.example", "file:///", "ftp://pay.example", "::"])
      expect(own(origin, "pay.example", false), origin).toBe(false);
    for (const host of ["", " ", "a b"]) expect(own("http://pay.example", host, false), host).toBe(false);
  });

  it("behind a trusted proxy that has ended TLS: http is refused, and https accepted", async () => {
    const cookie = `dp_session=${await world.session()}`;
    const host = new URL(world.baseUrl).host;
    // Log-out: any session may, and a refusal needs no service behind the bus.
    const end = (origin: string, proto: string) =>
      send(world.baseUrl, "DELETE", "/api/cashier/v1/session/", {
        headers: { cookie, origin, "x-forwarded-proto": proto },
      });
    expect(await end(`http://${host}`, "https")).toMatchObject({ status: 403, body: { code: "csrf_refused" } });
    // Accepted: the registry, which answers it, does not run here.
    expect(await end(`https://${host}`, "https")).toMatchObject({ status: 503 });
    expect(await end(`http://${host}`, "http")).toMatchObject({ status: 503 });
  });
});

describe("several session cookies", () => {
  const read = (cookie: string) =>
    send(world.baseUrl, "GET", "/api/cashier/v1/stations/1/lease/", { headers: { cookie } });

  it("differing: none counts, whichever comes first and whichever is known", async () => {
    const [own, other] = [await world.session(), await world.session({ userId: 8, name: "Eve", sessionId: 2 })];
    const unknown = randomBytes(32).toString("base64url");
    expect((await read(`dp_session=${own}`)).status).toBe(200);
    for (const [first, second] of [
      [own, other],
      [other, own],
      [own, unknown],
      [unknown, own],
    ])
      expect(await read(`dp_session=${first}; dp_session=${second}`)).toMatchObject({
        status: 401,
        body: { code: "session_invalid" },
      });
  });

  it("the same one twice: counts once; an empty one or another name's: does not count", async () => {
    const own = await world.session();
    for (const header of [
      `dp_session=${own}; dp_session=${own}`,
      `dp_session=; dp_session=${own}`,
      `theme=dark; dp_session=${own}; xdp_session=1`,
    ])
      expect((await read(header)).status, header).toBe(200);
  });
});
