/**
 * Periods of statement accounts and their closings. A period is a day or a month of one account; only its closing is stored.
 *
 *   open ── nothing is missing any more ──► ready ── a person closes it ──► closed, for good
 *
 * Every operation needs `reconciliation.manage`. Amounts are signed minor units.
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { repeatable } from "../operation.ts";
import { pageBefore, pageLimit } from "../page.ts";
import { signedMinorSchema as signedMinor } from "./amount.ts";
import { callerSchema as caller } from "./caller.ts";
import { ISSUE_KINDS } from "./issues.ts";
import { PROVIDER_MODES } from "./provider-configs.ts";
import { reasonSchema } from "./sentence.ts";

const id = z.int().positive();
const date = z.iso.date();
const count = z.int().min(0);

export const PERIOD_KINDS = ["day", "month"] as const;
export const PERIOD_STATES = ["open", "ready", "closed"] as const;
/** What a period lacks before it can be closed. */
export const MISSING_CODES = [
  /** The provider may still book payments of the period. `day` is the first day on which the period can be closed. */
  "settlement_delay",
  /** No imported statement covers `count` days of the period. `day` is the first of them. */
  "statement_missing",
  "import_held",
  /** Files that wait for their format, or whose import or withdrawal is under way. */
  "import_unfinished",
  /** Statement lines that no run has compared. */
  "run_missing",
  /** A run over days of the period is under way, or starts soon. */
  "run_pending",
  "issues_undecided",
  /** Settled payments that no statement shows, while later statements may. */
  "payments_expected",
  /** Collections whose settlement has begun and has no outcome. */
  "settlement_pending",
] as const;

const missingSchema = z.object({ code: z.enum(MISSING_CODES), count, day: date.nullable() });
export type Missing = z.infer<typeof missingSchema>;

const days = { kind: z.enum(PERIOD_KINDS), fromDate: date, toDate: date };
export const periodSchema = z.object({
  accountId: id,
  /** The account's filial; null where several filials share the account. */
  filialId: id.nullable(),
  ...days,
  state: z.enum(PERIOD_STATES),
  missing: z.array(missingSchema),
  /** The oldest closing that covers the period: of the period itself, or of a day's month. */
  closingId: id.nullable(),
});
export type Period = z.infer<typeof periodSchema>;

/** The most periods in one list: the service computes each of them for every request. */
export const LISTED_PERIODS = 100;

/**
 * The days from `fromDate` to `toDate`, or the months from that of `fromDate` to that of `toDate`, by account and day.
 * Refuses with `not_found`, `invalid_request`.
 */
export const listPeriods = repeatable(
  "reconciliation.listPeriods",
  z.object({
    caller,
    ...days,
    accountId: id.optional(),
    filialId: id.optional(),
    after: z.object({ accountId: z.int().min(0), fromDate: date }).optional(),
    limit: z.int().min(1).max(LISTED_PERIODS),
  }),
  z.object({ periods: z.array(periodSchema), hasMore: z.boolean() }),
);

export const closingSchema = z.object({
  closingId: id,
  accountId: id,
  ...days,
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
  z.object({ caller, accountId: id, kind: z.enum(PERIOD_KINDS), fromDate: date, reason: reasonSchema }),
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
    day: date,
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
