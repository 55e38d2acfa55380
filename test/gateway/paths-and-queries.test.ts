/** A path without its trailing slash, an unknown query, a malformed number in a query: the error names what is wrong. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOf, validate } from "../../gateway/http/parse-request.ts";
import { MissingSlashes, refusesOtherQueries } from "../../gateway/http/route.ts";
import { routes } from "../../gateway/routes.ts";
import { PERMISSIONS } from "../../services/bus/messages/caller.ts";
import { type Refused, send } from "../support/http.ts";
import { DISPLAY_SCOPES, type GatewayWorld, startGatewayWorld } from "./gateway-world.ts";
import { sendRaw } from "./raw-request.ts";

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld();
});
afterAll(() => world.stop());

const paths = new Set<string>(routes.map(({ path }) => path));
/** Paths that also have a row without the slash are left out: there, a browser follows a redirect. */
const withSlash = routes.filter(({ path }) => path.length > 1 && path.endsWith("/") && !paths.has(path.slice(0, -1)));
const pathOf = (template: string): string => template.replaceAll(/\{\w+\}/g, "42");

describe("a request to a path without its trailing slash", () => {
  it("each row of the route table, with its method: 404 with the right path in the detail", async () => {
    expect(withSlash.length).toBeGreaterThan(100);
    for (const { method, path, who, operationId } of withSlash) {
      const right = pathOf(path);
      const answer = await send<Refused>(world.baseUrl, method, `${right.slice(0, -1)}?limit=1`);
      // This gateway has no platform key, so the platform's paths do not exist.
      const code = who.kind === "platform" ? "path_not_found" : "trailing_slash_missing";
      expect([answer.status, answer.body.code], operationId).toEqual([404, code]);
      expect(answer.body.detail.includes(right), operationId).toBe(code === "trailing_slash_missing");
      expect(answer.headers.get("location"), operationId).toBeNull();
    }
  });

  it("a method that the path does not have: 404 as well", async () => {
    for (const method of ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      const answer = await send<Refused>(world.baseUrl, method, "/api/payments/v1/devices/enroll");
      expect([answer.status, answer.body.code], method).toEqual([404, "trailing_slash_missing"]);
    }
    const head = await send(world.baseUrl, "HEAD", "/api/payments/v1/devices/me");
    expect([head.status, head.text]).toEqual([404, ""]);
  });

  it("a request with a body: the gateway does not read the body, and the connection ends", async () => {
    const head = "POST /api/payments/v1/devices/enroll HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    const answer = await sendRaw(world.gateway.port, [head]);
    expect(answer).toMatchObject({ status: 404, isClosed: true });
    expect(answer.body).toContain("/api/payments/v1/devices/enroll/");
  });
});

describe("the path that the error suggests", () => {
  const slashes = new MissingSlashes(routes, { hasKey: true });

  it.each([
    ["/api/cashier/v1/orders/42", "/api/cashier/v1/orders/42/"],
    ["/api/platform/v1/freeze", "/api/platform/v1/freeze/"],
    ["/api/payments/v1/devices/me", "/api/payments/v1/devices/me/"],
  ])("the path %s: suggests %s", (path, right) => {
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
  ])("the path %s: suggests none", (path) => {
    expect(slashes.rightPath(path)).toBeUndefined();
  });

  it("a platform's path at a gateway without a platform key: suggests none", () => {
    const none = new MissingSlashes(routes, { hasKey: false });
    expect(none.rightPath("/api/platform/v1/freeze")).toBeUndefined();
  });
});

describe("a request with an unknown query", () => {
  it("each row that people call: 400 with the name of the query", async () => {
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

  it("a log-in, which has a body: 400 as well", async () => {
    const json = { email: "ana@harbour.example", password: "a long enough one" };
    const answer = await send<Refused>(world.baseUrl, "POST", "/api/cashier/v1/session/?nonsense=1", { json });
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
  });

  it("a device, a provider's callback, a probe and a page: the query is ignored", async () => {
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

describe("the character NUL in a query", () => {
  it("each parameter of each row: refused, because PostgreSQL cannot store it", () => {
    const withQuery = routes.filter(({ query }) => query !== undefined);
    const keys = new Set<string>();
    for (const route of withQuery) {
      for (const key of Object.keys((route.query as unknown as { readonly shape: object }).shape)) {
        keys.add(key);
        let refused: unknown;
        try {
          queryOf(route, `${key}=a%00b`);
        } catch (error) {
          refused = error;
        }
        const errors = [{ pointer: `/${key}`, code: "not_text" }];
        expect(refused, `${route.operationId} ${key}`).toMatchObject({ code: "invalid_request", facts: { errors } });
      }
    }
    expect([...keys]).toEqual(expect.arrayContaining(["search", "reference"]));
  });
});

const NUMBERS = ["limit", "since_id", "before_id", "since_version", "station_id", "filial_id"];
const NOT_PLAIN = ["1e2", " 5", "5 ", "+5", "-1", "", " ", "0x10", "1.0", "1_000", "٥", "NaN", "9".repeat(20)];

/** Values of the parameters that some lists require. */
const REQUIRED: Record<string, string> = {
  account_id: "5",
  filial_id: "5",
  from_date: "2026-11-01",
  to_date: "2026-11-02",
  day: "2026-11-01",
  mode: "live",
  kind: "day",
};

/** Values for the parameters that the query of an operation requires. */
function leastOf(query: { shape: Record<string, { safeParse: (value: undefined) => { success: boolean } }> }): object {
  const required = Object.entries(query.shape).filter(([, schema]) => !schema.safeParse(undefined).success);
  return Object.fromEntries(required.map(([key]) => [key, REQUIRED[key]]));
}

const numeric = routes.flatMap(({ operationId, query }) => {
  if (query === undefined) return [];
  const shaped = query as unknown as Parameters<typeof leastOf>[0];
  const keys = Object.keys(shaped.shape).filter((key) => NUMBERS.includes(key));
  return keys.map((key) => {
    // A cursor of two parts is accepted only with both parts.
    const pair = key === "since_id" && "since_day" in shaped.shape ? { since_day: "2026-11-01" } : {};
    return { operationId, query, key, least: leastOf(shaped), pair };
  });
});

type Field = { safeParse: (value: string) => { success: boolean } };

/** The fields of all requests that are dates or moments: the time of the day is the text after a moment's date. */
const dated = routes.flatMap(({ operationId, query, body }) =>
  [query, body].flatMap((schema) => {
    const { shape = {} } = (schema ?? {}) as { readonly shape?: Readonly<Record<string, Field>> };
    return Object.entries(shape).flatMap(([key, field]) => {
      const accepts = (text: string): boolean => field.safeParse(text).success;
      const time = ["", "T00:00:00Z"].find((after) => accepts(`2026-02-28${after}`) && !accepts(`2026-02-30${after}`));
      return time === undefined ? [] : [{ operationId, key, accepts, time }];
    });
  }),
);

describe("dates and moments in a request", () => {
  it("each field that is one: accepts the years 1900 to 2199 only, because PostgreSQL has no year 0", () => {
    const fields = new Set(dated.map(({ key }) => key));
    expect(fields).toEqual(
      new Set(["day", "last_day", "from", "to", "from_date", "to_date", "since_date", "since_day"]),
    );
    for (const { operationId, key, accepts, time } of dated) {
      const ends = ["0000-01-01", "1899-12-31", "1900-01-01", "2199-12-31", "2200-01-01", "9999-12-31"];
      const accepted = ends.filter((day) => accepts(day + time));
      expect(accepted, `${operationId} ${key}`).toEqual(["1900-01-01", "2199-12-31"]);
    }
  });
});

describe("numbers in a query", () => {
  it("each name in NUMBERS: is a parameter of some route", () => {
    expect(new Set(numeric.map(({ key }) => key))).toEqual(new Set(NUMBERS));
  });

  it.each(numeric)("$operationId: $key accepts plain decimal digits only", ({ query, key, least, pair }) => {
    expect(validate(query, { ...least, ...pair, [key]: "5" })).toMatchObject({ [key]: 5 });
    expect(validate(query, { ...least, ...pair, [key]: "007" })).toMatchObject({ [key]: 7 });
    for (const text of NOT_PLAIN) {
      let refused: unknown;
      try {
        validate(query, { ...least, ...pair, [key]: text });
      } catch (error) {
        refused = error;
      }
      expect(refused, JSON.stringify(text)).toMatchObject({
        code: "invalid_request",
        facts: { errors: [{ pointer: `/${key}`, detail: expect.stringMatching(/^Must be .+\.$/) }] },
      });
    }
  });

  it("a number that is left out: accepted", () => {
    for (const { query, least, operationId } of numeric)
      expect(() => validate(query, least), operationId).not.toThrow();
  });

  it.each([
    ["limit", "501", "Must be a whole number in decimal digits, 1 to 500."],
    ["limit", "0", "Must be a whole number in decimal digits, 1 to 500."],
    ["limit", "many", "Must be a whole number in decimal digits, 1 to 500."],
    ["since_id", "-1", "Must be a whole number in decimal digits, at least 0."],
    ["before_id", "0", "Must be a whole number in decimal digits, at least 1."],
  ])("%s=%s: the error names the accepted values", (key, text, detail) => {
    // A page of periods has another limit, because each period is counted from its lines.
    const ofKey = numeric.filter(
      (number) => number.key === key && number.operationId !== "reconciliation_list_periods",
    );
    expect(ofKey.length).toBeGreaterThan(3);
    for (const { query, operationId, least, pair } of ofKey) {
      let refused: unknown;
      try {
        validate(query, { ...least, ...pair, [key]: text });
      } catch (error) {
        refused = error;
      }
      expect(refused, operationId).toMatchObject({ facts: { errors: [{ pointer: `/${key}`, detail }] } });
    }
  });
});
