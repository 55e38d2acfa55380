/** A path without its trailing slash: an error that names the right path, never a redirect. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MissingSlashes } from "../../gateway/http/route.ts";
import { routes } from "../../gateway/routes.ts";
import { type Refused, send } from "../support/http.ts";
import { type GatewayWorld, startGatewayWorld } from "./gateway-world.ts";
import { sendRaw } from "./raw-request.ts";

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld();
});
afterAll(() => world.stop());

const paths = new Set<string>(routes.map(({ path }) => path));
/** Pages are reached without it as well; a browser's GET may follow a redirect. */
const withSlash = routes.filter(({ path }) => path.length > 1 && path.endsWith("/") && !paths.has(path.slice(0, -1)));
const pathOf = (template: string): string => template.replaceAll(/\{\w+\}/g, "42");

describe("a path without its trailing slash", () => {
  it("every row of the route table, by its own method: 404 with the right path in the detail", async () => {
    expect(withSlash.length).toBeGreaterThan(100);
    for (const { method, path, who, operationId } of withSlash) {
      const right = pathOf(path);
      const answer = await send<Refused>(world.baseUrl, method, `${right.slice(0, -1)}?limit=1`);
      // This gateway has no platform key: its paths do not exist.
      const code = who.kind === "platform" ? "path_not_found" : "trailing_slash_missing";
      expect([answer.status, answer.body.code], operationId).toEqual([404, code]);
      expect(answer.body.detail.includes(right), operationId).toBe(code === "trailing_slash_missing");
      expect(answer.headers.get("location"), operationId).toBeNull();
    }
  });

  it("any other method: the same", async () => {
    for (const method of ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      const answer = await send<Refused>(world.baseUrl, method, "/api/payments/v1/devices/enroll");
      expect([answer.status, answer.body.code], method).toEqual([404, "trailing_slash_missing"]);
    }
    const head = await send(world.baseUrl, "HEAD", "/api/payments/v1/devices/me");
    expect([head.status, head.text]).toEqual([404, ""]);
  });

  it("a body: it is not read, and the connection ends", async () => {
    const head = "POST /api/payments/v1/devices/enroll HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    const answer = await sendRaw(world.gateway.port, [head]);
    expect(answer).toMatchObject({ status: 404, isClosed: true });
    expect(answer.body).toContain("/api/payments/v1/devices/enroll/");
  });
});

describe("the detail names table paths only", () => {
  const slashes = new MissingSlashes(routes, { hasKey: true });

  it.each([
    ["/api/cashier/v1/orders/42", "/api/cashier/v1/orders/42/"],
    ["/api/platform/v1/freeze", "/api/platform/v1/freeze/"],
    ["/api/payments/v1/devices/me", "/api/payments/v1/devices/me/"],
  ])("%s: %s", (path, right) => {
    expect(slashes.rightPath(path)).toBe(right);
  });

  it.each([
    "/",
    "/healthz",
    "/api/payments/v1/devices/me/",
    "/api/payments/v1/devices/me//",
    "/api/cashier/v1/orders/<script>",
    "/api/cashier/v1/orders/{}",
    "/api/cashier/v1/orders/%34%32",
    "/api/cashier/v1/orders/042",
    "/api/cashier/v1/orders/42%0d%0aX: y",
    "/api/cashier/v1/orders/9999999999999999",
    "//evil.example/api/cashier/v1/orders/42",
    "/constructor",
    `/api/cashier/v1/orders/${"4".repeat(4_000)}`,
  ])("%s: none", (path) => {
    expect(slashes.rightPath(path)).toBeUndefined();
  });

  it("without a platform key the platform's paths do not exist", () => {
    const none = new MissingSlashes(routes, { hasKey: false });
    expect(none.rightPath("/api/platform/v1/freeze")).toBeUndefined();
  });
});
