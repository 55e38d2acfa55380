/** The amounts up to which one person may attribute a payment alone. Every operation needs `organization.manage`. */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { amountMinorSchema } from "./amount.ts";
import { callerSchema as caller } from "./caller.ts";
import { currencySchema } from "./currency.ts";
import { reasonSchema as reason } from "./sentence.ts";

const id = z.int().positive();

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
 */
export const listAttributionLimits = repeatable(
  "providers.listAttributionLimits",
  z.object({ caller }),
  z.object({ limits: z.array(attributionLimitSchema) }),
);
/** Sets a limit; null restores the default. */
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
