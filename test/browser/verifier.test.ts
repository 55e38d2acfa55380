/** The verifier of certificates in a real browser: the same file as in Node, loaded as a module by a third-party page. */
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { footprint, resultOf } from "../conformance/recorded-run.ts";
import { send } from "../support/http.ts";
import { logIn, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { startBrowser } from "./chromium.ts";

const VERIFIER = join(import.meta.dirname, "..", "..", "clients", "verify-certificate.mjs");
const STEP_BYTES = 7;
const PAGE = "<!doctype html><title>Verify</title>";

let system: TestSystem;
let browser: Browser;
let server: Server;
let page: Page;
let owner: Person;
/** The certificate that the service answers, and its keys. */
let certificate: string;
let logKeys: readonly string[];
let artifactId: number;
const errors: string[] = [];

const download = async (): Promise<string> => {
  const path = `/api/backoffice/v1/certification-artifacts/${artifactId}/certificate/`;
  return (await send(system.baseUrl, "GET", path, { token: owner.token })).text;
};

beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem({ sandboxProvider: true }), startBrowser()]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  const body = resultOf("display", await footprint(system, owner, "display"), ["display_total"]);
  const recorded = await owner.good<{ certification_artifacts: readonly { artifact_id: number }[] }>(
    "POST",
    "certification-artifacts/",
    { body },
  );
  artifactId = recorded.certification_artifacts[0]?.artifact_id ?? 0;
  certificate = await download();
  const { body: log } = await send<{ keys: readonly { verifier_key: string }[] }>(
    system.baseUrl,
    "GET",
    "/.well-known/certification-log/",
  );
  logKeys = log.keys.map(({ verifier_key: key }) => key);
  server = createServer((request, response) => {
    if (request.url === "/verify-certificate.mjs")
      response.setHeader("content-type", "text/javascript").end(readFileSync(VERIFIER));
    else response.setHeader("content-type", "text/html").end(PAGE);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  page = await browser.newPage();
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
});
afterAll(async () => {
  await browser.close();
  server.closeAllConnections();
  server.close();
  await system.stop();
});

interface Found {
  readonly sentence?: string;
  readonly notProven?: readonly string[];
  readonly isExpired?: boolean;
  readonly isRevoked?: boolean;
  readonly refused?: string;
}

/** The page's result for each text. */
const verify = (texts: readonly string[], now?: string): Promise<readonly Found[]> =>
  page.evaluate<readonly Found[]>(`(async () => {
    const { partsOf, verifyCertificate, sentenceOf, NotValid, NOT_PROVEN } = await import("/verify-certificate.mjs");
    const { texts, logKeys, now } = ${JSON.stringify({ texts, logKeys, now: now ?? null })};
    return await Promise.all(texts.map(async (text) => {
      try {
        const time = now === null ? {} : { now: new Date(now) };
        const found = await verifyCertificate({ ...partsOf(text), logKeys, ...time });
        const { isExpired, revocation } = found;
        return { sentence: sentenceOf(found), notProven: NOT_PROVEN, isExpired, isRevoked: revocation !== undefined };
      } catch (error) {
        return { refused: error instanceof NotValid ? error.message : String(error) };
      }
    }));
  })()`);

describe("the verifier in a browser", () => {
  test("a certificate of the service: it is valid, and the page lists what it does not prove", async () => {
    const [found] = await verify([certificate]);
    expect(found).toMatchObject({
      sentence: expect.stringMatching(/^Valid until \S+: Acme 4\.2\.0: Acme, display_total, PASSED\.$/) as string,
      isExpired: false,
      isRevoked: false,
    });
    expect(found?.notProven?.length).toBeGreaterThanOrEqual(2);
    expect(errors).toEqual([]);
  });

  // The test in Node flips every byte. A browser verifies more slowly, so this test flips only some.
  test("a flipped byte in any part: it is not valid", async () => {
    const bytes = Buffer.from(certificate);
    const flipped: string[] = [];
    for (let at = 0; at < bytes.length; at += STEP_BYTES) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      flipped.push(changed.toString("utf8"));
    }
    const found = await verify(flipped);
    expect(found.length).toBeGreaterThan(100);
    for (const [nth, { refused }] of found.entries()) expect(refused, `byte ${nth * STEP_BYTES}`).toBeTypeOf("string");
    expect(
      found.every(({ refused }) => /^The |^A |^An /.test(refused ?? "")),
      "each gives the reason",
    ).toBe(true);
  });

  test("a certificate two years later: it has expired; once the owner has revoked it, it is revoked", async () => {
    const later = new Date(Date.now() + 2 * 365 * 24 * 3_600_000).toISOString();
    expect((await verify([certificate], later))[0]).toMatchObject({ isExpired: true });
    await owner.good("POST", `certification-artifacts/${artifactId}/revoke/`, { body: { reason: "A defect." } });
    expect((await verify([await download()]))[0]).toMatchObject({ isRevoked: true });
  });
});
