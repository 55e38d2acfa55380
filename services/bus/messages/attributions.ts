/**
 * Attributions by two people, above an amount that the organization sets.
 *
 *   proposed ──► waits ──► confirmed by another person: settled through the payment seam
 *                  │──► rejected by another person
 *                  │──► withdrawn by the person who proposed
 *                  └──► ended: the evidence has changed, or the order is paid, voided or of another amount
 *
 * Proposals need `reconciliation.manage`; the same person with the same request again gets the same answer.
 */
import { z } from "zod";
import { AMOUNT_MINOR_PATTERN } from "../bounds.ts";
import { once, repeatable } from "../operation.ts";
import { callerSchema as caller } from "./caller.ts";
import { issueSchema } from "./issues.ts";

const id = z.int().positive();
const oneIssue = z.object({ issue: issueSchema });

/** One proposal waits at a time. Refuses as `attributeIssue`. */
export const proposeAttribution = once(
  "providers.proposeAttribution",
  z.object({ caller, issueId: id, orderId: id, reason: z.string() }),
  oneIssue,
);
/** Settles it through the payment seam, in the name of the person who confirms. Refuses as `attributeIssue`. */
export const confirmAttribution = repeatable(
  "providers.confirmAttribution",
  z.object({ caller, issueId: id, proposalId: id }),
  oneIssue,
);
export const rejectAttribution = repeatable(
  "providers.rejectAttribution",
  z.object({ caller, issueId: id, proposalId: id, reason: z.string() }),
  oneIssue,
);
export const withdrawAttribution = repeatable(
  "providers.withdrawAttribution",
  z.object({ caller, issueId: id, proposalId: id }),
  oneIssue,
);

/** Up to this amount one person attributes alone. */
export const attributionLimitSchema = z.object({
  currency: z.string(),
  aloneUpToMinor: z.string().regex(AMOUNT_MINOR_PATTERN),
  /** Null: the default, which no person has set. */
  set: z.object({ byId: id, byName: z.string(), atMs: z.number(), reason: z.string() }).nullable(),
});
export type AttributionLimit = z.infer<typeof attributionLimitSchema>;

/** Those that are set, by currency, and the default of each currency of the organization's stations. Needs `organization.manage`. */
export const listAttributionLimits = repeatable(
  "providers.listAttributionLimits",
  z.object({ caller }),
  z.object({ limits: z.array(attributionLimitSchema) }),
);
/** Null: the default again. Needs `organization.manage`. */
export const setAttributionLimit = once(
  "providers.setAttributionLimit",
  z.object({
    caller,
    currency: z.string(),
    aloneUpToMinor: z.string().regex(AMOUNT_MINOR_PATTERN).nullable(),
    reason: z.string(),
  }),
  z.object({ limit: attributionLimitSchema }),
);
