/**
 * The payment intent: one attempt to collect one order's amount over one route.
 *
 *                 PRESENT            REPORT                  ATTEST               SETTLED
 *   ┌─────────┐ ──────────► ┌───────────┐ ──────► ┌────────────┐ ──────► ┌──────────┐ ──────► (succeeded)
 *   │ created │             │ presented │         │ processing │ ◄────── │ settling │
 *   └─────────┘ ──REPORT──────────────────────────►────────────┘ REFUSED └──────────┘
 *        └── ATTEST (cash, attested terminal) ────────────────────────────────►
 *
 *   created, presented, processing ── CANCEL ──► (cancelled)      ── EXPIRE ──► (expired)
 *
 *   created, presented, processing ── SETTLED ──► (succeeded)
 *
 * `settling` means that a settlement is committed: from there neither CANCEL nor EXPIRE is possible (I7). A refusal by
 * the payment seam leads back to where the intent was attested from. A report never ends an intent (I3).
 *
 * SETTLED outside `settling` is a race between two hosts: one asked the seam and was refused, the other's earlier
 * question was answered later, and paid. The seam is money truth, so an intent that has not ended succeeds all the same.
 */
import { assign, setup } from "xstate";
import type { AmountMinor } from "./currency.ts";
import { STATE_LIMITS } from "./settings.ts";

/** How the money is collected (design §5). */
export const ROUTES = ["smart_pos", "dynamic_qr", "attested_terminal", "cash"] as const;
export type Route = (typeof ROUTES)[number];

export const REPORTED_OUTCOMES = [
  "reported_success",
  "reported_declined",
  "reported_cancelled",
  "reported_unknown",
] as const;
export type ReportedOutcome = (typeof REPORTED_OUTCOMES)[number];

/** All states inside; `settling` is shown outside as `processing` (design §2.4). */
export const INTENT_STATES = [
  "created",
  "presented",
  "processing",
  "settling",
  "succeeded",
  "cancelled",
  "expired",
] as const;
export type IntentState = (typeof INTENT_STATES)[number];
/** The statuses of the wire (design §4, "intent statuses"). */
export type IntentStatus = Exclude<IntentState, "settling">;

/** One reported outcome: evidence, never truth (contract, "Reported outcome"). */
export interface Report {
  readonly deviceId: number;
  readonly outcome: ReportedOutcome;
  readonly providerReference: string;
  readonly providerCode: string;
  readonly reportedAtMs: number;
}

/** What a cashier attested, kept from the moment the settlement is committed. */
export interface Attestation {
  /** The command that attested, while its answer is outstanding; empty once the settlement has ended. */
  readonly commandId: string;
  readonly cashierId: number;
  readonly cashierName: string;
  /** The settlement's reference: the device's own for the smart POS route, what the cashier typed for a terminal. */
  readonly reference: string;
  readonly atMs: number;
  readonly transactionId: number | null;
}

/** An attestation as the payment seam keeps it with its transaction. */
export type RecordedAttestation = Pick<Attestation, "cashierId" | "cashierName" | "reference" | "atMs">;

/** Everything about an intent but its state. Every money field is a snapshot of order truth, authored at creation (I1). */
export interface IntentRecord {
  readonly intentId: number;
  readonly displayNumber: number;
  readonly route: Route;
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  readonly amountMinor: AmountMinor;
  readonly currency: string;
  readonly stationName: string;
  /** The companion that this intent is handed to; null for routes without one. */
  readonly deviceId: number | null;
  readonly handoffTarget: string;
  readonly createdBy: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly presentedAtMs: number | null;
  /** The newest reports, oldest first; `reportCount` counts all that were ever made. */
  readonly reports: readonly Report[];
  readonly reportCount: number;
  readonly attestation: Attestation | null;
  readonly endedAtMs: number | null;
}

/** An intent as it stands in a station's committed state. */
export interface PaymentIntent extends IntentRecord {
  readonly status: IntentState;
}

export type IntentEvent =
  | { readonly type: "PRESENT"; readonly atMs: number }
  | { readonly type: "REPORT"; readonly report: Report }
  | { readonly type: "ATTEST"; readonly attestation: Attestation }
  | {
      readonly type: "SETTLED";
      readonly atMs: number;
      readonly transactionId: number;
      /** Counts where the intent has no attestation of its own. */
      readonly attestation?: RecordedAttestation | undefined;
    }
  | { readonly type: "REFUSED" }
  | { readonly type: "CANCEL"; readonly atMs: number }
  | { readonly type: "EXPIRE"; readonly atMs: number };

/** Routes that are attested without a device's report: the cashier holds the money or the terminal's slip. */
const isAttestedDirectly = (route: Route): boolean => route === "cash" || route === "attested_terminal";

/**
 * The newest reports within the bound. The newest one with a reference stays among them: it is what the attestation
 * inherits, and a companion that repeats empty outcomes must not push the slip's number out.
 */
function keepReports(reports: readonly Report[]): readonly Report[] {
  const newest = reports.slice(-STATE_LIMITS.activeReports);
  if (newest.some((report) => report.providerReference !== "")) return newest;
  const referenced = reports.findLast((report) => report.providerReference !== "");
  return referenced === undefined ? newest : [referenced, ...newest.slice(1)];
}

export const paymentIntentMachine = setup({
  types: { context: {} as IntentRecord, events: {} as IntentEvent },
  guards: {
    isAttestedDirectly: ({ context }) => isAttestedDirectly(context.route),
    wasPresented: ({ context }) => context.presentedAtMs !== null,
    hasReports: ({ context }) => context.reportCount > 0,
  },
  actions: {
    recordPresented: assign(({ context, event }) =>
      event.type === "PRESENT" ? { ...context, presentedAtMs: event.atMs } : context,
    ),
    recordReport: assign(({ context, event }) =>
      event.type === "REPORT"
        ? {
            ...context,
            reports: keepReports([...context.reports, event.report]),
            reportCount: context.reportCount + 1,
          }
        : context,
    ),
    recordAttestation: assign(({ context, event }) =>
      event.type === "ATTEST" ? { ...context, attestation: event.attestation } : context,
    ),
    recordTransaction: assign(({ context, event }) => {
      if (event.type !== "SETTLED") return context;
      const attested = context.attestation ?? event.attestation;
      if (attested === undefined) return context;
      return { ...context, attestation: { ...attested, commandId: "", transactionId: event.transactionId } };
    }),
    withdrawAttestation: assign({ attestation: null }),
    recordEnd: assign(({ context, event }) =>
      event.type === "SETTLED" || event.type === "CANCEL" || event.type === "EXPIRE"
        ? { ...context, endedAtMs: event.atMs, reports: context.reports.slice(-STATE_LIMITS.endedReports) }
        : context,
    ),
  },
}).createMachine({
  id: "paymentIntent",
  initial: "created",
  context: ({ input }) => input as IntentRecord,
  states: {
    created: {
      on: {
        PRESENT: { target: "presented", actions: "recordPresented" },
        REPORT: { target: "processing", actions: "recordReport" },
        ATTEST: { guard: "isAttestedDirectly", target: "settling", actions: "recordAttestation" },
        SETTLED: { target: "succeeded", actions: ["recordTransaction", "recordEnd"] },
        CANCEL: { target: "cancelled", actions: "recordEnd" },
        EXPIRE: { target: "expired", actions: "recordEnd" },
      },
    },
    presented: {
      on: {
        REPORT: { target: "processing", actions: "recordReport" },
        SETTLED: { target: "succeeded", actions: ["recordTransaction", "recordEnd"] },
        CANCEL: { target: "cancelled", actions: "recordEnd" },
        EXPIRE: { target: "expired", actions: "recordEnd" },
      },
    },
    processing: {
      on: {
        REPORT: { target: "processing", actions: "recordReport" },
        ATTEST: { target: "settling", actions: "recordAttestation" },
        SETTLED: { target: "succeeded", actions: ["recordTransaction", "recordEnd"] },
        CANCEL: { target: "cancelled", actions: "recordEnd" },
        EXPIRE: { target: "expired", actions: "recordEnd" },
      },
    },
    settling: {
      on: {
        // Evidence is never refused from the assigned device, not even while the seam is at work.
        REPORT: { target: "settling", actions: "recordReport" },
        SETTLED: { target: "succeeded", actions: ["recordTransaction", "recordEnd"] },
        REFUSED: [
          { guard: "hasReports", target: "processing", actions: "withdrawAttestation" },
          { guard: "wasPresented", target: "presented", actions: "withdrawAttestation" },
          { target: "created", actions: "withdrawAttestation" },
        ],
      },
    },
    succeeded: { type: "final" },
    cancelled: { type: "final" },
    expired: { type: "final" },
  },
});

/** States from which nothing moves the intent any more. */
export function isEnded(status: IntentState): boolean {
  return status === "succeeded" || status === "cancelled" || status === "expired";
}

/** The status as the wire shows it: a settlement under way still is `processing`. */
export function wireStatus(status: IntentState): IntentStatus {
  return status === "settling" ? "processing" : status;
}
