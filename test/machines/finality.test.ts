/** The tables of the answers that a host confirms before it sends them: they agree with the table of HTTP errors. */
import { describe, expect, it } from "vitest";
import { ERRORS } from "../../gateway/http/errors.ts";
import { IS_FINAL, needsNewestState, STATION_COMMAND_TYPES } from "../../machines/station/finality.ts";
import { REFUSAL_CODES } from "../../machines/station/reply.ts";

describe("an answer without a commit", () => {
  it.each(REFUSAL_CODES)("a refusal with %s: the host confirms it, unless clients may retry the command", (code) => {
    expect(IS_FINAL[code]).toBe(!ERRORS[code].retryable);
    for (const type of STATION_COMMAND_TYPES)
      expect(needsNewestState({ type }, { ok: false, code })).toBe(IS_FINAL[code]);
  });

  it("the table of refusals: every code has a row, and no other row exists", () => {
    expect(Object.keys(IS_FINAL).toSorted()).toEqual(REFUSAL_CODES.toSorted());
  });

  it("a command that changes nothing: confirmed only for commands that could change a newer state", () => {
    const accepted = { ok: true, type: "accepted" } as const;
    const confirmed = STATION_COMMAND_TYPES.filter((type) => needsNewestState({ type }, accepted));
    expect(confirmed.toSorted()).toEqual([
      "end_reported",
      "intent_present",
      "lease_acquire",
      "lease_break",
      "lease_release",
      "order_inquire",
      "provider_cleared",
      "provider_money_differs",
      "settlement_refused",
      "settlement_succeeded",
    ]);
  });
});
