import { BOUNDS } from "../../bus/bounds.ts";
import { RefusedError } from "../../bus/refusals.ts";

/** Why a person did it: asked for, because whoever reads the trail later has nobody to ask. Throws `invalid_request`. */
export function checkReason(reason: string): void {
  const max = BOUNDS.reasonCharacters;
  const isText = reason.isWellFormed() && !reason.includes("\0");
  if (reason.trim() !== "" && reason.length <= max && isText) return;
  const errors = [{ pointer: "/reason", detail: `a reason has 1 to ${max} characters` }];
  throw new RefusedError({ code: "invalid_request", errors });
}
