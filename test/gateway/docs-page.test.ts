/** The gateway serves the API page completely: the page names no other host, and its headers forbid requests to one. */

import { readFileSync } from "node:fs";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OPENAPI_FILE } from "../../gateway/api/meta/pages.ts";
import { send } from "../support/http.ts";
import { type GatewayWorld, startGatewayWorld } from "./gateway-world.ts";

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld();
});
afterAll(() => world.stop());

describe("/docs/", () => {
  it("every file that the page names: the gateway serves it", async () => {
    const page = await send(world.baseUrl, "GET", "/docs/");
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const names = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] as string);
    expect(names).toEqual(expect.arrayContaining(["swagger-ui.css", "swagger-ui.js", "page.js"]));
    for (const name of names.filter((each) => each !== "data:,")) {
      const url = new URL(name, `${world.baseUrl}/docs/`);
      expect(url.origin).toBe(world.baseUrl);
      const file = await send(world.baseUrl, "GET", url.pathname);
      expect([file.status, file.text.length > 100]).toEqual([200, true]);
    }
  });

  it("its headers: the page may send requests only to this gateway, and no page may frame it", async () => {
    const policy = (await send(world.baseUrl, "GET", "/docs/")).headers.get("content-security-policy") ?? "";
    const sources = policy.split(";").flatMap((directive) => directive.trim().split(" ").slice(1));
    expect(new Set(sources)).toEqual(new Set(["'none'", "'self'", "'unsafe-inline'", "data:"]));
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
  });
});

describe("/openapi.json", () => {
  it("the answer is the checked-in document, and 304 for its ETag", async () => {
    const first = await send(world.baseUrl, "GET", "/openapi.json");
    expect(first.text).toBe(readFileSync(OPENAPI_FILE, "utf8"));
    const headers = { "if-none-match": first.headers.get("etag") as string };
    const second = await send(world.baseUrl, "GET", "/openapi.json", { headers });
    expect([second.status, second.text]).toEqual([304, ""]);
  });
});

describe("a file of the documentation", () => {
  /** The bytes as they are sent: `fetch` would decompress them. */
  async function raw(path: string, headers: Record<string, string>) {
    const answer = await request(world.baseUrl + path, { headers });
    return { status: answer.statusCode, headers: answer.headers, bytes: Buffer.from(await answer.body.arrayBuffer()) };
  }
  const whole = readFileSync(OPENAPI_FILE);

  it.each([
    ["br, gzip", "br"],
    ["gzip, deflate, br;q=0.5", "gzip"],
    ["GZIP", "gzip"],
    ["*", "br"],
    ["br;q=0, *;q=0.1", "gzip"],
    ["br;q=0, gzip;q=0", undefined],
    ["deflate, zstd", undefined],
    ["identity", undefined],
    ["", undefined],
  ])("Accept-Encoding %j: compressed with %s", async (accepted, coding) => {
    const answer = await raw("/openapi.json", { "accept-encoding": accepted });
    expect([answer.status, answer.headers["content-encoding"]]).toEqual([200, coding]);
    expect(answer.headers.vary).toBe("Accept-Encoding");
    expect(Number(answer.headers["content-length"])).toBe(answer.bytes.length);
    const decode = { br: brotliDecompressSync, gzip: gunzipSync, undefined: (bytes: Buffer) => bytes };
    expect(decode[`${coding}` as keyof typeof decode](answer.bytes).equals(whole)).toBe(true);
    if (coding !== undefined) expect(answer.bytes.length).toBeLessThan(whole.length / 10);
  });

  it.each([
    "/openapi.json",
    "/asyncapi.json",
    "/asyncapi-bus.json",
    "/docs/",
    "/docs/page.js",
    "/docs/swagger-ui.css",
    "/docs/swagger-ui.js",
  ])("%s: may be cached for five minutes, and has the same ETag in every coding", async (path) => {
    const answers = [];
    for (const coding of ["br", "gzip", "identity"]) answers.push(await raw(path, { "accept-encoding": coding }));
    expect(new Set(answers.map(({ headers }) => headers.etag)).size).toBe(1);
    expect(answers.map(({ headers }) => headers["cache-control"])).toEqual(Array(3).fill("public, max-age=300"));
    const etag = answers[0]?.headers.etag as string;
    const unchanged = await raw(path, { "accept-encoding": "br", "if-none-match": etag });
    expect([unchanged.status, unchanged.bytes.length, unchanged.headers.vary]).toEqual([304, 0, "Accept-Encoding"]);
  });
});

describe("a path that leads to the API page", () => {
  it.each(["/", "/docs"])("%s: redirected to /docs/", async (path) => {
    const answer = await send(world.baseUrl, "GET", path);
    expect([answer.status, answer.headers.get("location"), answer.text]).toEqual([308, "/docs/", ""]);
    const followed = await fetch(world.baseUrl + path);
    expect([followed.status, new URL(followed.url).pathname]).toEqual([200, "/docs/"]);
    expect((await send(world.baseUrl, "HEAD", path)).status).toBe(308);
    expect((await send(world.baseUrl, "POST", path)).status).toBe(405);
  });
});
