/** How the gateway serves the pages: browsers revalidate HTML, cache assets permanently, and load from no other origin. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { contentSecurityPolicy } from "../../../gateway/api/meta/web-pages.ts";
import { manifestIn } from "../../../gateway/web/build.ts";
import { BUILT_PAGES, PAGES } from "../../../gateway/web/page-names.ts";
import { send } from "../../support/http.ts";
import { type GatewayWorld, startGatewayWorld } from "../gateway-world.ts";

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld();
});
afterAll(() => world.stop());

describe("a page", () => {
  it.each(PAGES)("/%s/: browsers revalidate it at each visit, and get 304 for its tag", async (page) => {
    const first = await send(world.baseUrl, "GET", `/${page}/`);
    expect([first.status, first.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(first.headers.get("cache-control")).toBe("no-cache");
    const headers = { "if-none-match": first.headers.get("etag") as string };
    const second = await send(world.baseUrl, "GET", `/${page}/`, { headers });
    expect([second.status, second.text]).toEqual([304, ""]);
    const typed = await send(world.baseUrl, "GET", `/${page}`);
    expect([typed.status, typed.headers.get("location")]).toEqual([308, `/${page}/`]);
  });

  it("its headers: it loads and calls this gateway only, and only pages of this origin may frame it", async () => {
    const { headers } = await send(world.baseUrl, "GET", "/till/");
    const { host } = new URL(world.baseUrl);
    expect(headers.get("content-security-policy")).toBe(contentSecurityPolicy(host));
    const sources = contentSecurityPolicy(host)
      .split("; ")
      .flatMap((directive) => directive.split(" ").slice(1));
    expect(new Set(sources)).toEqual(new Set(["'none'", "'self'", `ws://${host}`, `wss://${host}`]));
    expect([headers.get("x-content-type-options"), headers.get("referrer-policy")]).toEqual(["nosniff", "no-referrer"]);
  });

  it("an invalid host: not copied into the page's policy", () => {
    expect(contentSecurityPolicy("evil.example; script-src *")).not.toContain("evil");
  });
});

describe("an asset of the pages", () => {
  it("any coding: complete, and may be cached permanently", async () => {
    const files = Object.entries(manifestIn(fileURLToPath(BUILT_PAGES))?.files ?? {}).filter(
      ([, { hashed }]) => hashed,
    );
    expect(files.length).toBeGreaterThan(5);
    for (const [path, { file, type }] of files) {
      for (const coding of ["br", "gzip", "identity"]) {
        const answer = await fetch(world.baseUrl + path, { headers: { "accept-encoding": coding } });
        expect([answer.status, answer.headers.get("content-type")]).toEqual([200, type]);
        expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
        expect(answer.headers.get("content-encoding")).toBe(coding === "identity" ? null : coding);
        expect(await answer.text()).toBe(readFileSync(new URL(file, BUILT_PAGES), "utf8"));
      }
    }
  });

  it.each(["/assets/till.AAAAAAAA.js", "/assets/..%2Fmanifest.json", "/assets/manifest.json", "/display/other.js"])(
    "%s: 404, because the build has no such file",
    async (path) => {
      const answer = await send(world.baseUrl, "GET", path);
      expect([answer.status, (answer.body as { code: string }).code]).toEqual([404, "path_not_found"]);
    },
  );
});
