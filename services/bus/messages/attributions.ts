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
import { amountMinorSchema } from "./amount.ts";
import { callerSchema as caller } from "./caller.ts";
import { currencySchema } from "./currency.ts";
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

/** Up to this amount, one person may attribute a payment alone. */
const attributionLimitSchema = z.object({
  currency: z.string(),
  aloneUpToMinor: amountMinorSchema,
  /** Null for the default limit. */
  set: z.object({ byId: id, byName: z.string(), atMs: z.number(), reason: z.string() }).nullable(),
});
export type AttributionLimit = z.infer<typeof attributionLimitSchema>;

/**
 * The limits that a person has set, and the defaults for the currencies of the organization's stations, by currency.
 * Needs `organization.manage`.
 */
export const listAttributionLimits = repeatable(
  "providers.listAttributionLimits",
  z.object({ caller }),
  z.object({ limits: z.array(attributionLimitSchema) }),
);
/** Sets a limit; null restores the default. Needs `organization.manage`. */
export const setAttributionLimit = once(
  "providers.setAttributionLimit",
  z.object({
    caller,
    currency: currencySchema,
    aloneUpToMinor: amountMinorSchema.nullable(),
    reason,
  }),
  z.object({ limit: attributionLimitSchema }),
);
