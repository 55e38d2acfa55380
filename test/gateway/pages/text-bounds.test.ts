/** The till cuts no text that the service accepts, and sends none that it refuses. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../gateway/limits.ts";
import { TEXT_BOUNDS } from "../../../gateway/web/till/text-bounds.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";

test("the texts of the till: each may be as long as the service accepts", () => {
  expect(TEXT_BOUNDS).toEqual({
    name: BOUNDS.nameCharacters,
    reference: LIMITS.referenceCharacters,
    search: BOUNDS.searchCharacters,
  });
});
