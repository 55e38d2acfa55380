/** The contract, sentence by sentence: a check covers each one, or a reason says why none can. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Check } from "../../clients/conformance/check.ts";
import { CHECKS } from "../../clients/conformance/checks.ts";
import { exemptionOf, holdsSentence, sentencesOf } from "../../clients/conformance/contract.ts";
import { DEVICE_CHECKS } from "../../clients/conformance/devices/checks.ts";
import { conformanceDocument } from "../../clients/conformance/document.ts";
import { EXEMPTIONS } from "../../clients/conformance/exempt.ts";

const CONTRACT = readFileSync(join(import.meta.dirname, "..", "..", "docs", "contract.md"), "utf8");
const sentences = sentencesOf(CONTRACT);

describe("the contract", () => {
  it("has some two hundred sentences and rows of tables", () => {
    expect(sentences.length).toBeGreaterThan(190);
  });

  it("is covered by the checks, except sentences with a reason", () => {
    const held = (sentence: (typeof sentences)[number]) => CHECKS.some((check) => holdsSentence(check, sentence));
    const without = sentences.filter((sentence) => !held(sentence) && exemptionOf(sentence) === undefined);
    expect(without.map(({ text }) => text)).toEqual([]);
  });

  it("a sentence that no check quotes: it is found", () => {
    const [added] = sentencesOf("## Errors\n\n1. A device is paid by the hour.");
    expect(added).toMatchObject({ section: "Errors", text: "A device is paid by the hour." });
    expect(exemptionOf(added as (typeof sentences)[number])).toBeUndefined();
    expect(CHECKS.some((check) => holdsSentence(check, added as (typeof sentences)[number]))).toBe(false);
  });

  it("has rows that end or begin like a quoted one: that quote does not cover them", () => {
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

  it("has every sentence that a check quotes or that is exempt", () => {
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

  it("is described by a table that is up to date: npm run coverage", () => {
    const { path, text } = conformanceDocument();
    expect(readFileSync(path, "utf8")).toBe(text);
  });
});

describe("the checks", () => {
  it.each([
    ["a service", CHECKS],
    ["a companion", DEVICE_CHECKS.companion],
    ["a display", DEVICE_CHECKS.display],
  ])("of %s have unique names, and build on earlier ones", (_, checks: readonly Pick<Check, "id" | "after">[]) => {
    const ids = checks.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [index, { id, after = [] }] of checks.entries())
      for (const before of after) expect(ids.slice(0, index), `${id} after ${before}`).toContain(before);
  });

  it.each(Object.entries(DEVICE_CHECKS))("of a %s quote the contract or the guide for device makers", (_, checks) => {
    const guide = readFileSync(join(import.meta.dirname, "..", "..", "docs", "devices.md"), "utf8");
    const all = [...sentences, ...sentencesOf(guide)];
    for (const { id, quotes } of checks)
      for (const quote of quotes) {
        const isThere = all.some(({ text }) => text.includes(quote) || quote.includes(text));
        expect(isThere, `${id} quotes "${quote}"`).toBe(true);
      }
  });
});
