import { expect } from "vitest";

/** The refusal that asks for a confirmation, with the number of any reason. */
export const moneyRefusal = (named: { readonly reason?: string; readonly earlierIntentId?: number }): object => ({
  ok: false,
  code: "money_may_have_moved",
  ...named,
  reasonNumber: expect.any(Number) as number,
});
