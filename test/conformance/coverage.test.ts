/** Each sentence of the contract is covered by a check, or has a reason why no check can cover it. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { Check } from "../../clients/conformance/check.ts";
import { CHECKS } from "../../clients/conformance/checks.ts";
import { exemptionOf, holdsSentence, sentencesOf } from "../../clients/conformance/contract.ts";
import { hasTwoDecimals } from "../../clients/conformance/currencies.ts";
import { DEVICE_CHECKS } from "../../clients/conformance/devices/checks.ts";
import { conformanceDocument } from "../../clients/conformance/document.ts";
import { EXEMPT_PARTS, EXEMPTIONS } from "../../clients/conformance/exempt.ts";
import { newWire, Party, type SuiteAnswer } from "../../clients/conformance/http.ts";
import { waitUntilFree } from "../../clients/conformance/one-run.ts";
import { type FreshSandbox, World } from "../../clients/conformance/world.ts";
import { currencyExponent } from "../../machines/currencies.ts";

const CONTRACT = readFileSync(join(import.meta.dirname, "..", "..", "docs", "contract.md"), "utf8");
const sentences = sentencesOf(CONTRACT);

describe("the contract and the checks of the suite", () => {
  it("the contract: some two hundred sentences and rows of tables", () => {
    expect(sentences.length).toBeGreaterThan(190);
  });

  it("each sentence: covered by a check, or exempt with a reason", () => {
    const held = (sentence: (typeof sentences)[number]) => CHECKS.some((check) => holdsSentence(check, sentence));
    const without = sentences.filter((sentence) => !held(sentence) && exemptionOf(sentence) === undefined);
    expect(without.map(({ text }) => text)).toEqual([]);
  });

  it("a new sentence that no check quotes: found", () => {
    const [added] = sentencesOf("## Errors\n\n1. A device is paid by the hour.");
    expect(added).toMatchObject({ section: "Errors", text: "A device is paid by the hour." });
    expect(exemptionOf(added as (typeof sentences)[number])).toBeUndefined();
    expect(CHECKS.some((check) => holdsSentence(check, added as (typeof sentences)[number]))).toBe(false);
  });

  it("a row that begins or ends like a quoted row: not covered by that quote", () => {
    const row = (text: string) => ({ section: "Device snapshot", text });
    const quotes = (quote: string) => ({ quotes: [quote] as const });
    expect(holdsSentence(quotes("name | string"), row("name | string | "))).toBe(true);
    expect(holdsSentence(quotes("name | string"), row("station_name | string | "))).toBe(false);
    expect(holdsSentence(quotes("status | string"), row("status | string | intent status"))).toBe(false);
    expect(holdsSentence(quotes("status | string | intent status"), row("status | string | "))).toBe(false);
    expect(holdsSentence(quotes("404 | not_assigned | the intent"), row("404 | not_assigned | the intent is"))).toBe(
      true,
    );
  });

  it("each quote of a check, and each exempt sentence: in the contract", () => {
    for (const { id, quotes } of CHECKS)
      for (const quote of quotes) {
        const isThere = sentences.some(({ text }) => text.includes(quote) || quote.includes(text));
        expect(isThere, `${id} quotes "${quote}"`).toBe(true);
      }
    for (const { text } of EXEMPTIONS)
      expect(
        sentences.some((each) => each.text.includes(text)),
        text,
      ).toBe(true);
  });

  it("each exempt part of a sentence: in a sentence that a check covers, and in no quote", () => {
    for (const { text } of EXEMPT_PARTS) {
      const whole = sentences.find((sentence) => sentence.text.includes(text));
      const covering = CHECKS.filter((check) => whole !== undefined && holdsSentence(check, whole));
      expect(covering.length, text).toBeGreaterThan(0);
      const quoting = covering.filter(({ quotes }) => quotes.some((quote) => quote.includes(text)));
      expect(quoting.map(({ id }) => id)).toEqual([]);
    }
  });

  it("the table of checks in the documents: up to date; after a change run npm run coverage", () => {
    const { path, text } = conformanceDocument();
    expect(readFileSync(path, "utf8")).toBe(text);
  });
});

describe("the currency of a sandbox", () => {
  it("the currencies with two decimals: those of the service", () => {
    for (const code of Intl.supportedValuesOf("currency")) {
      const exponent = currencyExponent(code);
      if (exponent !== undefined) expect(hasTwoDecimals(code), code).toBe(exponent === 2);
    }
  });

  it("a currency without two decimals: the run does not begin, and the sandbox is as before", async () => {
    const body = { station_id: 12, cashier: { user_id: 9 }, currency: "JPY" };
    const send = vi.fn(async () => ({ status: 200, headers: new Headers(), text: "", body }));
    const owner = { send } as unknown as Party;
    const { signal } = new AbortController();
    await expect(waitUntilFree(owner, 7, { signal, onWait: undefined })).rejects.toThrow(
      "Sandbox 7 has the currency JPY, and the suite orders amounts with two decimals; use a sandbox in a currency such as EUR.",
    );
    expect(send.mock.calls).toEqual([["GET", "sandboxes/7/"]]);
  });
});

describe("the companion of the suite on a slow network", () => {
  it("a collection long after its last heartbeat: it sends a heartbeat first", async () => {
    const sent: string[] = [];
    const body = JSON.stringify({ token: "t", credential: "c", order_id: 1, intent_id: 2 });
    const service = createServer((request, response) => {
      const operation = request.url?.split("/").at(-2) ?? "";
      sent.push(operation);
      const status = ["orders", "intents", "enroll"].includes(operation) ? 201 : 200;
      response.writeHead(status, { "content-type": "application/json" }).end(body);
    });
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
    const { port } = service.address() as AddressInfo;
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      const wire = newWire(`http://127.0.0.1:${port}`, new AbortController().signal);
      const sandbox = { stationId: 1, companionCode: "code", cashier: {} } as FreshSandbox;
      const world = new World(wire, new Party(wire, "owner", "/"), sandbox, "EUR");
      await world.logInCashier();
      await world.enroll("companion");
      await world.beat();
      sent.length = 0;
      await world.collect("smart_pos");
      vi.advanceTimersByTime(20_000);
      await world.collect("cash");
      await world.collect("smart_pos");
      expect(sent.join(" ")).toBe("orders intents orders intents heartbeat orders intents");
    } finally {
      vi.useRealTimers();
      service.closeAllConnections();
      service.close();
    }
  });
});

describe("the check of the throttle", () => {
  /** The gateways get the requests in turn; each has a throttle with a burst of ten. */
  const worldBehind = (gateways: number): World => {
    let sent = 0;
    const send = async (): Promise<SuiteAnswer> => {
      sent += 1;
      const isRefused = sent > gateways * 10;
      const body = isRefused ? { code: "throttled" } : {};
      const headers = new Headers(isRefused ? { "retry-after": "1" } : {});
      return { status: isRefused ? 429 : 200, headers, text: JSON.stringify(body), body };
    };
    const companion = { send: async () => ({ status: 200 }) };
    return { display: { unpaced: () => ({ send }) }, companion } as unknown as World;
  };
  const check = CHECKS.find(({ id }) => id === "throttle.per_credential");

  it("one gateway, and nine that share the requests: passed", async () => {
    await check?.run(worldBehind(1));
    await check?.run(worldBehind(9));
  });

  it("no throttle: failed", async () => {
    await expect(check?.run(worldBehind(1_000))).rejects.toThrow("answers to 105 requests");
  });
});

describe("the checks of the suite", () => {
  it.each([
    ["a service", CHECKS],
    ["a companion", DEVICE_CHECKS.companion],
    ["a display", DEVICE_CHECKS.display],
  ])("checks of %s: unique names, each after those it needs", (_, checks: readonly Pick<Check, "id" | "after">[]) => {
    const ids = checks.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [index, { id, after = [] }] of checks.entries())
      for (const before of after) expect(ids.slice(0, index), `${id} after ${before}`).toContain(before);
  });

  it.each(Object.entries(DEVICE_CHECKS))("checks of a %s: quote the contract or the device guide", (_, checks) => {
    const guide = readFileSync(join(import.meta.dirname, "..", "..", "docs", "devices.md"), "utf8");
    const all = [...sentences, ...sentencesOf(guide)];
    for (const { id, quotes } of checks)
      for (const quote of quotes) {
        const isThere = all.some(({ text }) => text.includes(quote) || quote.includes(text));
        expect(isThere, `${id} quotes "${quote}"`).toBe(true);
      }
  });
});
