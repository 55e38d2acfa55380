/** A device's idempotency key is taken as it is: two keys are never one. */
import { describe, expect, it } from "vitest";
import { reportCommandId } from "../../gateway/http/command-id.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";

describe("a report's idempotency key", () => {
  it("any content and any length: it is taken as it is", () => {
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
