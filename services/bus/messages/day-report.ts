/** The day of a filial in sums. Needs `reconciliation.manage`. Amounts are signed minor units. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { repeatable } from "../operation.ts";
import { signedMinorSchema as signedMinor } from "./amount.ts";
import { callerSchema as caller } from "./caller.ts";
import { dateSchema } from "./date.ts";
import { ISSUE_KINDS } from "./issues.ts";
import { PROVIDER_MODES } from "./provider-configs.ts";

const id = z.int().positive();
const count = z.int().min(0);
const date = z.iso.date();

const sum = z.object({ count, minor: signedMinor });
/** The totals of one currency in a day. `reportDay` explains which sums are equal. */
const dayTotalsSchema = z.object({
  currency: z.string(),
  settled: z.object({
    cash: sum,
    attestedTerminal: sum,
    smartPos: sum,
    dynamicQr: sum,
    total: sum,
  }),
  /** The settled payments except cash, by how they compare with the statements. */
  electronic: z.object({ matched: sum, differing: sum, expected: sum, total: sum }),
  statement: z.object({
    payments: sum,
    refunds: sum,
    chargebacks: sum,
    fees: sum,
    payouts: sum,
    bank: sum,
    other: sum,
    total: sum,
  }),
  /** Parts of `statement.payments`. */
  tips: sum,
  openDifferences: z.object({
    kinds: z.array(z.object({ kind: z.enum(ISSUE_KINDS), ...sum.shape })),
    total: sum,
  }),
});
export type DayTotals = z.infer<typeof dayTotalsSchema>;

/**
 * The day of a filial in sums, by currency. `settled.total` is the sum of the four routes. `electronic.total` is
 * `settled.total` without cash, and the sum of its three parts. `statement.total` is the sum of its parts, and the
 * change of the accounts' balances. Refuses with `not_found`, `invalid_request`.
 */
export const reportDay = repeatable(
  "reconciliation.reportDay",
  z.object({
    caller,
    filialId: id,
    day: dateSchema,
    mode: z.enum(PROVIDER_MODES),
    /** An IANA name. When left out, the time zone of the filial's accounts. */
    timeZone: z.string().optional(),
    /** When the business day begins, in minutes after midnight: it may end in the night. */
    startsAtMinute: z.int().min(0).max(BOUNDS.minuteOfDay),
  }),
  z.object({
    filialId: id,
    day: date,
    mode: z.enum(PROVIDER_MODES),
    timeZone: z.string(),
    fromMs: z.number(),
    toMs: z.number(),
    /** The accounts of the filial whose lines the report counts. */
    accounts: z.array(z.object({ accountId: id, name: z.string(), isClosed: z.boolean() })),
    totals: z.array(dayTotalsSchema),
    /** Unresolved issues of the day without an amount, for example malformed rows of files. */
    openWithoutAmount: z.array(z.object({ kind: z.enum(ISSUE_KINDS), count })),
  }),
);
