/** Closings of periods, each a signed statement of what it closes. Every operation needs `reconciliation.manage`. */
import { z } from "zod";
import { repeatable } from "../operation.ts";
import { pageBefore, pageLimit } from "../page.ts";
import { callerSchema as caller } from "./caller.ts";
import { dateSchema } from "./date.ts";
import { PERIOD_KINDS, periodDays } from "./reconciliation-periods.ts";
import { reasonSchema } from "./sentence.ts";

const id = z.int().positive();
const count = z.int().min(0);

export const closingSchema = z.object({
  closingId: id,
  accountId: id,
  ...periodDays,
  closedBy: z.object({ userId: id, name: z.string() }),
  closedAtMs: z.number(),
  reason: z.string(),
  lines: count,
  issues: count,
  /** Issues of the kind `after_closing`: lines and issues of the period that came after the closing. */
  afterClosing: count,
  /** The signed text: canonical JSON. */
  statement: z.string(),
  signature: z.object({ algorithm: z.literal("Ed25519"), keyId: z.string(), publicKey: z.string(), value: z.string() }),
});
export type Closing = z.infer<typeof closingSchema>;
const oneClosing = z.object({ closing: closingSchema });

/** Why a period cannot be closed: the `reason` of a `conflict`. */
export const CLOSING_CONFLICTS = [
  /** The period lacks what `listPeriods` shows in `missing`. */
  "period_not_ready",
  /** Another person has closed the period, or the month of the day. */
  "period_closed",
  /** The installation has no signing key. */
  "no_signing_key",
] as const;

/**
 * Closes a period for good. When the same person repeats the request with the same reason, the answer has the same
 * closing. Refuses with `not_found`, `invalid_request`, `busy` while an import or a run works on the account, and
 * `conflict` with a reason of `CLOSING_CONFLICTS`.
 */
export const closePeriod = repeatable(
  "reconciliation.closePeriod",
  z.object({ caller, accountId: id, kind: z.enum(PERIOD_KINDS), fromDate: dateSchema, reason: reasonSchema }),
  oneClosing,
);

export const getClosing = repeatable("reconciliation.getClosing", z.object({ caller, closingId: id }), oneClosing);

/** Newest first. */
export const listClosings = repeatable(
  "reconciliation.listClosings",
  z.object({ caller, accountId: id.optional(), ...pageBefore }),
  z.object({ closings: z.array(closingSchema), hasMore: z.boolean() }),
);

const CLOSING_ITEMS = ["line", "issue"] as const;

/**
 * The lines of a closing by fingerprint, or its issues by id, each as canonical JSON. `after` is the key of the last
 * item of the page before. Refuses with `not_found`.
 */
export const listClosingItems = repeatable(
  "reconciliation.listClosingItems",
  z.object({ caller, closingId: id, of: z.enum(CLOSING_ITEMS), after: z.string().optional(), limit: pageLimit }),
  z.object({ items: z.array(z.object({ key: z.string(), item: z.string() })), hasMore: z.boolean() }),
);

/** The public keys of all closings, in base64url; by their first use. */
export const listClosingKeys = repeatable(
  "reconciliation.listClosingKeys",
  z.object({ caller }),
  z.object({ keys: z.array(z.object({ keyId: z.string(), publicKey: z.string(), firstUsedAtMs: z.number() })) }),
);
