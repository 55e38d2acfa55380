/**
 * Attributions by two people, above an amount that the organization sets.
 *
 *   proposed ──► waits ──► confirmed by another person: settled through the payment seam
 *                  │──► rejected by another person
 *                  │──► withdrawn by the person who proposed
 *                  └──► ended: the evidence has changed, or the order is paid, voided or of another amount
 *
 * Proposals need `reconciliation.manage`. When the same person repeats the same request, the answer is the same.
 */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { callerSchema as caller } from "./caller.ts";
import { issueSchema } from "./issues.ts";
import { reasonSchema as reason } from "./sentence.ts";

const id = z.int().positive();
const oneIssue = z.object({ issue: issueSchema });

/** Only one proposal of an issue can wait at a time. Refuses as `attributeIssue`. */
export const proposeAttribution = once(
  "providers.proposeAttribution",
  z.object({ caller, issueId: id, orderId: id, reason }),
  oneIssue,
);
/**
 * Settles the proposal through the payment seam, in the name of the person who confirms it. Refuses as
 * `attributeIssue`.
 */
export const confirmAttribution = repeatable(
  "providers.confirmAttribution",
  z.object({ caller, issueId: id, proposalId: id }),
  oneIssue,
);
export const rejectAttribution = repeatable(
  "providers.rejectAttribution",
  z.object({ caller, issueId: id, proposalId: id, reason }),
  oneIssue,
);
export const withdrawAttribution = repeatable(
  "providers.withdrawAttribution",
  z.object({ caller, issueId: id, proposalId: id }),
  oneIssue,
);
