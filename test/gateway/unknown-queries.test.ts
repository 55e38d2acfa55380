/** A query that an operation does not have: a misspelt name must not be ignored. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refusesOtherQueries } from "../../gateway/http/route.ts";
import { routes } from "../../gateway/routes.ts";
import { PERMISSIONS } from "../../services/bus/messages/caller.ts";
import { type Refused, send } from "../support/http.ts";
import { DISPLAY_SCOPES, type GatewayWorld, startGatewayWorld } from "./gateway-world.ts";

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld();
});
afterAll(() => world.stop());

const pathOf = (template: string): string => template.replaceAll(/\{\w+\}/g, "42");

describe("an unknown query", () => {
  it("every row that people call: 400 with its name", async () => {
    const token = await world.session({ role: "owner", permissions: [...PERMISSIONS] });
    const rows = routes.filter(({ who }) => who.kind === "session");
    expect(rows.length).toBeGreaterThan(80);
    for (const { method, path, body, operationId } of rows) {
      const answer = await send<Refused>(world.baseUrl, method, `${pathOf(path)}?nonsense=1`, {
        token,
        ...(body === undefined ? {} : { json: {} }),
      });
      expect([answer.status, answer.body.code], operationId).toEqual([400, "invalid_request"]);
      expect(JSON.stringify(answer.body), operationId).toContain('"/nonsense"');
    }
  });

  it("beside a body, at the log-in: refused too", async () => {
    const json = { email: "ana@harbour.example", password: "a long enough one" };
    const answer = await send<Refused>(world.baseUrl, "POST", "/api/cashier/v1/session/?nonsense=1", { json });
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
  });

  it("a device, a provider's callback, a probe and a page: ignored", async () => {
    const station = await world.openStation(42);
    const token = await world.credential(station.displayId, 42, DISPLAY_SCOPES);
    const display = await send(world.baseUrl, "GET", "/api/payments/v1/devices/display/?t=1", { token });
    expect(display.status).toBe(200);
    expect((await send(world.baseUrl, "GET", "/docs/?from=mail")).status).toBe(200);
    const open = routes.filter((row) => !refusesOtherQueries(row)).map(({ path }) => path);
    expect(
      new Set(open.map((path) => path.split("/").slice(0, 3).join("/")).filter((path) => path.startsWith("/api"))),
    ).toEqual(new Set(["/api/payments", "/api/providers"]));
  });
});
