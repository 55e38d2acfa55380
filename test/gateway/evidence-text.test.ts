/** What a device reports is kept as far as it can be kept, and a key that cannot be stored still is one key. */
import { describe, expect, it } from "vitest";
import { reportBodySchema } from "../../gateway/contract/device.ts";
import { evidenceText } from "../../gateway/contract/evidence-text.ts";
import { reportCommandId } from "../../gateway/handlers/command-id.ts";
import { LIMITS } from "../../gateway/limits.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";

const longest = LIMITS.reportTextCharacters;

describe("evidence", () => {
  it.each([
    ["as it is", "RRN-000451", "RRN-000451"],
    ["with line ends and controls", "A\r\nB\u0001", "A\r\nB\u0001"],
    ["with NUL replaced", "A\0B", "A\uFFFDB"],
    ["with each half of a pair replaced", "\udc00A\ud800", "\uFFFDA\uFFFD"],
    ["with whole pairs", "💳", "💳"],
    ["up to its bound", "x".repeat(longest), "x".repeat(longest)],
    ["cut at its bound", "x".repeat(longest + 1), "x".repeat(longest)],
    ["cut before a character that does not fit", `${"x".repeat(longest - 1)}💳`, "x".repeat(longest - 1)],
    ["with its last pair", `${"x".repeat(longest - 2)}💳💳`, `${"x".repeat(longest - 2)}💳`],
  ])("is kept %s", (_how, text, kept) => {
    expect(evidenceText(text)).toBe(kept);
    expect(
      reportBodySchema.parse({ intent_id: 1, outcome: "reported_unknown", provider_reference: text }),
    ).toMatchObject({ provider_reference: kept });
  });
});

describe("a report's idempotency key", () => {
  it("is itself, whatever it holds and however long it is", () => {
    const keys = [
      "a",
      "a\0",
      "a\uFFFD",
      "a\ud800",
      "a\ud801",
      "a\udc00",
      JSON.stringify("a\ud800"),
      "x".repeat(255),
      "x".repeat(256),
      `${"x".repeat(9_999)}y`,
      `${"x".repeat(9_999)}z`,
    ];
    const ids = keys.map((key) => reportCommandId(5, 7, key));
    expect(new Set(ids).size).toBe(keys.length);
    expect(keys.map((key) => reportCommandId(5, 7, key))).toEqual(ids);
    for (const id of ids) expect(id.length).toBeLessThanOrEqual(BOUNDS.commandIdCharacters);
  });
});
