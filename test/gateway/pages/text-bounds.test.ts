/** The pages cut no text that the service accepts, and sends none that it refuses. */
import { expect, test } from "vitest";
import { LIMITS } from "../../../gateway/limits.ts";
import { TEXT_BOUNDS } from "../../../gateway/web/shared/text-bounds.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";

test("the texts of the pages: each may be as long as the service accepts", () => {
  expect(TEXT_BOUNDS).toEqual({
    name: BOUNDS.nameCharacters,
    reference: LIMITS.referenceCharacters,
    reason: BOUNDS.reasonCharacters,
    search: BOUNDS.searchCharacters,
  });
});
