/** The counts of issues, and the people who may resolve them. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { repeatable } from "../operation.ts";
import { callerSchema as caller } from "./caller.ts";
import { issueFilterSchema } from "./issues.ts";

const id = z.int().positive();

/** The views of unresolved issues. An issue may be in several views. */
export const ISSUE_VIEWS = ["all_open", "needs_attention", "waiting", "missing", "stale"] as const;
/** An issue that waits for longer is stale: a provider's weekly statement has come in this time. */
export const STALE_AFTER_DAYS = 7;

const issueSumSchema = z.object({
  /** Null for the issues without an amount. */
  currency: z.string().nullable(),
  count: z.number(),
  /** A sum may have more digits than one amount. */
  amountMinor: z
    .string()
    .regex(/^-?\d+$/)
    .nullable(),
});

/** `sums` has the issues that match the filter, by currency. `views` counts all unresolved issues. */
export const getIssueOverview = repeatable(
  "providers.getIssueOverview",
  z.object({ caller, ...issueFilterSchema.shape }),
  z.object({ views: z.record(z.enum(ISSUE_VIEWS), z.number()), sums: z.array(issueSumSchema) }),
);

/** The people to whom an issue can be assigned, by name, up to this number. */
export const LISTED_OPERATORS = BOUNDS.listed;
export const listOperators = repeatable(
  "providers.listOperators",
  z.object({ caller }),
  z.object({ operators: z.array(z.object({ userId: id, name: z.string() })) }),
);
