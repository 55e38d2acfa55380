/** How many issues there are, and the people who may decide them. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { repeatable } from "../operation.ts";
import { callerSchema as caller } from "./caller.ts";
import { issueFilterSchema } from "./issues.ts";

const id = z.int().positive();

/** The views of undecided issues; one issue may be in several. */
export const ISSUE_VIEWS = ["all_open", "needs_attention", "waiting", "missing", "stale"] as const;
/** An issue that waits for longer is stale: a week has passed the provider's weekly statement. */
export const STALE_AFTER_DAYS = 7;

const issueSumSchema = z.object({
  /** Null: of the issues without an amount. */
  currency: z.string().nullable(),
  count: z.number(),
  /** A sum may have more digits than one amount. */
  amountMinor: z
    .string()
    .regex(/^-?\d+$/)
    .nullable(),
});

/** By currency what the filter names; the views, of all undecided issues. */
export const getIssueOverview = repeatable(
  "providers.getIssueOverview",
  z.object({ caller, ...issueFilterSchema.shape }),
  z.object({ views: z.record(z.enum(ISSUE_VIEWS), z.number()), sums: z.array(issueSumSchema) }),
);

/** Those whom an issue can be assigned to, by name, up to a bound. */
export const LISTED_OPERATORS = BOUNDS.listed;
export const listOperators = repeatable(
  "providers.listOperators",
  z.object({ caller }),
  z.object({ operators: z.array(z.object({ userId: id, name: z.string() })) }),
);
