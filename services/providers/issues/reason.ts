import { issueSentence } from "../../bus/issue-sentence.ts";
import { reasonSchema } from "../../bus/messages/sentence.ts";
import { RefusedError } from "../../bus/refusals.ts";

/** Why a person did it: asked for, because whoever reads the trail later has nobody to ask. Throws `invalid_request`. */
export function checkReason(reason: string): void {
  const { error } = reasonSchema.safeParse(reason, { error: issueSentence });
  if (error === undefined) return;
  const errors = error.issues.map(({ message }) => ({ pointer: "/reason", detail: message }));
  throw new RefusedError({ code: "invalid_request", errors });
}
