/**
 * How a payment intent moves.
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
 * On the route `dynamic_qr` a provider takes the device's place (no PRESENT, no REPORT):
 *
 *   ┌─────────┐ ─QR_READY─► ┌───────────┐ ─────────────CONFIRM────────────► ┌──────────┐ ─SETTLED─► (succeeded)
 *   │ created │             │ presented │         ┌────────────┐ ─CONFIRM,─► │ settling │
 *   └─────────┘ ─CONFIRM──► └───────────┘         │ processing │   ATTEST    └──────────┘
 *        └────────FAIL───────────┴─► (cancelled)  └────────────┘ ◄──REFUSED───────┘
 *
 * On that route `processing` means that the provider has the payment and the seam refused it. The cashier corrects the order
 * and attests, or ends the intent, and the payment stays an open issue.
 *
 * OVERTAKEN ends an intent in `created` or `presented` when its order was paid in another way or voided. It also ends a QR
 * when the order's amount differs from the QR's. MARK stores that money may have moved and CLEAR removes it: both keep the
 * state.
 *
 * `settling` means that a settlement is committed: from there neither CANCEL nor EXPIRE is possible (I7). When the payment
 * seam refuses, the intent returns to `processing` if it has a report or a confirmation, else to the state from which the
 * cashier attested it. An attested card payment is then marked. A report never ends an intent (I3).
 *
 * SETTLED outside `settling` is a race between two hosts: the seam refused one host's request, and later paid the other
 * host's earlier request. The seam's record decides, so an intent that has not ended succeeds.
 */
import { assign, setup } from "xstate";
import { digestOf } from "./digest.ts";
import {
  type Attestation,
  type FailureReason,
  type IntentRecord,
  isAttestedDirectly,
  isConfirmed,
  type OrderObstacle,
  type RecordedAttestation,
  type Report,
  type ReportedOutcome,
  type UnclearReason,
} from "./payment-intent.ts";
import { digestOfText, textOfReport, withinText } from "./report-text.ts";
import { STATE_LIMITS } from "./settings.ts";

export type IntentEvent =
  | { readonly type: "PRESENT"; readonly atMs: number }
  | { readonly type: "REPORT"; readonly report: Report }
  | { readonly type: "ATTEST"; readonly attestation: Attestation }
  | {
      readonly type: "SETTLED";
      readonly atMs: number;
      readonly transactionId: number;
      /** Used when the intent has no attestation. */
      readonly attestation?: RecordedAttestation | undefined;
    }
  | { readonly type: "REFUSED" }
  | { readonly type: "CANCEL"; readonly atMs: number; readonly key: string; readonly requestId?: string | undefined }
  | { readonly type: "EXPIRE"; readonly atMs: number }
  | {
      readonly type: "QR_READY";
      readonly atMs: number;
      readonly qrPayload: string;
      readonly providerReference: string;
    }
  | {
      readonly type: "CONFIRM";
      readonly atMs: number;
      readonly attestation: Attestation;
      readonly providerReference: string;
    }
  | {
      readonly type: "FAIL";
      readonly atMs: number;
      readonly reason: FailureReason;
      readonly requestId?: string | undefined;
    }
  | { readonly type: "OVERTAKEN"; readonly atMs: number; readonly reason: OrderObstacle }
  | { readonly type: "MARK"; readonly reason: UnclearReason }
  | { readonly type: "CLEAR" };

/**
 * The newest reports within the bounds of number and of text. The newest report with a reference always stays, because the
 * attestation inherits the reference: a companion that repeats empty outcomes must not push it out. The newest report of all
 * also stays, whatever its length.
 */
function keepReports(reports: readonly Report[]): readonly Report[] {
  const inherited = reports.findLastIndex((report) => report.providerReference !== "");
  const isPinned = (index: number): boolean => index === reports.length - 1 || index === inherited;
  const numbered = reports.map((report, index) => ({ report, index }));
  const pinned = numbered.filter(({ index }) => isPinned(index));
  const others = numbered.filter(({ index }) => !isPinned(index)).slice(pinned.length - STATE_LIMITS.activeReports);
  const kept = [...pinned, ...withinText(others, ({ report }) => textOfReport(report))];
  return kept.toSorted((a, b) => a.index - b.index).map(({ report }) => report);
}

/** The intent's reports after some were dropped. `formerReports` lets the station recognise a repetition of these. */
function withReports(
  { formerReports }: IntentRecord,
  all: readonly Report[],
  kept: readonly Report[],
): Pick<IntentRecord, "reports" | "formerReports"> {
  const dropped = all.filter((report) => !kept.includes(report));
  const former = dropped.map((report) => {
    const { key, outcome, reportedAtMs } = report;
    return { key, outcome, reportedAtMs, textDigest: digestOfText(report) };
  });
  return { reports: kept, formerReports: [...formerReports, ...former].slice(-STATE_LIMITS.formerReports) };
}

/**
 * Why money may have moved after a report with this outcome. A decline cancels no earlier report, because the terminal may
 * have printed a slip before it.
 */
export function reasonOfOutcome(outcome: ReportedOutcome): UnclearReason | undefined {
  if (outcome === "reported_success") return "success_reported";
  return outcome === "reported_unknown" ? "outcome_unknown" : undefined;
}

/**
 * The reason after one more. `outcome_unknown` never replaces another reason, and `late_evidence` never replaces a reported
 * payment. In all other cases the newer reason counts.
 */
function markedBy(marked: IntentRecord["moneyMayHaveMoved"], reason: UnclearReason | undefined): typeof marked {
  if (reason === undefined || (reason === "outcome_unknown" && marked !== "")) return marked;
  if (reason === "late_evidence" && (marked === "success_reported" || marked === "late_success")) return marked;
  return reason;
}

/**
 * Why money may have moved after the seam refused an attestation. The cashier attested a card payment, so the guest may have
 * paid it. The cashier still holds the cash of a cash collection, and a QR has its provider's confirmation.
 */
function reasonOfRefusal({ route }: IntentRecord): UnclearReason | undefined {
  return route === "attested_terminal" || route === "smart_pos" ? "outcome_unknown" : undefined;
}

/** The reason after the order was paid, voided or changed: if the intent was presented, the guest may have paid it. */
function markedByOvertaking({ moneyMayHaveMoved, presentedAtMs, route }: IntentRecord): UnclearReason | "" {
  if (moneyMayHaveMoved !== "" || presentedAtMs === null) return moneyMayHaveMoved;
  return route === "dynamic_qr" ? "qr_presented" : "handoff_presented";
}

/** The seam's record as an attestation. Without a cashier it is a provider's. */
function attestationOnRecord(
  recorded: RecordedAttestation | undefined,
): Omit<Attestation, "transactionId"> | undefined {
  return recorded && { ...recorded, commandId: "", by: recorded.cashierId === 0 ? "provider" : "cashier" };
}

/** The provider's part once the seam has settled a QR: the QR was confirmed, even if the log has lost the confirmation. */
function confirmedOnRecord(
  { provider }: IntentRecord,
  recorded: RecordedAttestation | undefined,
): IntentRecord["provider"] {
  if (provider === null || provider.confirmedAtMs !== null || recorded === undefined) return provider;
  return { ...provider, providerReference: recorded.reference, confirmedAtMs: recorded.atMs };
}

function endReasonOf(event: IntentEvent): IntentRecord["endReason"] {
  if (event.type === "FAIL") return event.reason;
  return event.type === "OVERTAKEN" ? event.reason : "";
}

/** The HTTP request that ended the intent unpaid. Without one, a deadline or the order ended it. */
function requestIdOf(event: IntentEvent): string | undefined {
  return event.type === "CANCEL" || event.type === "FAIL" ? event.requestId : undefined;
}

export const paymentIntentMachine = setup({
  types: { context: {} as IntentRecord, events: {} as IntentEvent },
  guards: {
    isAttestedDirectly: ({ context }) => isAttestedDirectly(context.route),
    isByProvider: ({ context }) => context.route === "dynamic_qr",
    isByDeviceOrCashier: ({ context }) => context.route !== "dynamic_qr",
    // A host asks the seam to settle a QR only after the provider's confirmation. If the log lost it, the seam's record is proof.
    mayBeSettled: ({ context, event }) =>
      context.route !== "dynamic_qr" ||
      isConfirmed(context) ||
      (event.type === "SETTLED" && event.attestation !== undefined),
    // A cashier attests a QR only after the provider has confirmed its payment and the seam has refused it.
    hasEvidence: ({ context }) => context.route !== "dynamic_qr" || isConfirmed(context),
    // A changed order ends only a QR, because a QR contains the amount. On other routes the payment seam decides.
    isOvertaken: ({ context, event }) =>
      event.type === "OVERTAKEN" && (event.reason !== "order_changed" || context.route === "dynamic_qr"),
    wasPresented: ({ context }) => context.presentedAtMs !== null,
    hasReportsOrConfirmation: ({ context }) => context.reportCount > 0 || isConfirmed(context),
  },
  actions: {
    recordPresented: assign(({ context, event }) =>
      event.type === "PRESENT" ? { ...context, presentedAtMs: event.atMs } : context,
    ),
    recordReport: assign(({ context, event }) => {
      if (event.type !== "REPORT") return context;
      const all = [...context.reports, event.report];
      return {
        ...context,
        ...withReports(context, all, keepReports(all)),
        reportCount: context.reportCount + 1,
        moneyMayHaveMoved: markedBy(context.moneyMayHaveMoved, reasonOfOutcome(event.report.outcome)),
      };
    }),
    recordAttestation: assign(({ context, event }) =>
      event.type === "ATTEST" ? { ...context, attestation: event.attestation } : context,
    ),
    recordTransaction: assign(({ context, event }) => {
      if (event.type !== "SETTLED") return context;
      const attested = context.attestation ?? attestationOnRecord(event.attestation);
      if (attested === undefined) return context;
      const commandId = attested.commandId === "" ? "" : digestOf(attested.commandId);
      const attestation = { ...attested, commandId, transactionId: event.transactionId, requestId: undefined };
      return { ...context, attestation, provider: confirmedOnRecord(context, event.attestation) };
    }),
    withdrawAttestation: assign(({ context }) => ({
      ...context,
      attestation: null,
      moneyMayHaveMoved: markedBy(context.moneyMayHaveMoved, reasonOfRefusal(context)),
    })),
    recordQr: assign(({ context, event }) =>
      event.type === "QR_READY" && context.provider !== null
        ? {
            ...context,
            presentedAtMs: event.atMs,
            provider: {
              ...context.provider,
              qrPayload: event.qrPayload,
              providerReference: event.providerReference,
              requestId: undefined,
            },
          }
        : context,
    ),
    recordConfirmation: assign(({ context, event }) =>
      event.type === "CONFIRM" && context.provider !== null
        ? {
            ...context,
            attestation: event.attestation,
            provider: {
              ...context.provider,
              qrPayload: "",
              providerReference: event.providerReference,
              confirmedAtMs: context.provider.confirmedAtMs ?? event.atMs,
              requestId: undefined,
            },
          }
        : context,
    ),
    recordMark: assign(({ context, event }) =>
      event.type === "MARK"
        ? { ...context, moneyMayHaveMoved: markedBy(context.moneyMayHaveMoved, event.reason) }
        : context,
    ),
    withdrawMark: assign({ moneyMayHaveMoved: "" }),
    recordEnd: assign(({ context, event }) =>
      event.type === "SETTLED" ||
      event.type === "CANCEL" ||
      event.type === "EXPIRE" ||
      event.type === "FAIL" ||
      event.type === "OVERTAKEN"
        ? {
            ...context,
            endedAtMs: event.atMs,
            endReason: endReasonOf(event),
            cancelKey: event.type === "CANCEL" ? event.key : "",
            moneyMayHaveMoved: event.type === "OVERTAKEN" ? markedByOvertaking(context) : context.moneyMayHaveMoved,
            ...withReports(context, context.reports, context.reports.slice(-STATE_LIMITS.endedReports)),
            // The payload is removed because no guest scans it any more, and ended intents are the largest part of a commit.
            provider: context.provider && { ...context.provider, qrPayload: "", requestId: requestIdOf(event) },
          }
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
        PRESENT: { guard: "isByDeviceOrCashier", target: "presented", actions: "recordPresented" },
        REPORT: { guard: "isByDeviceOrCashier", target: "processing", actions: "recordReport" },
        ATTEST: { guard: "isAttestedDirectly", target: "settling", actions: "recordAttestation" },
        SETTLED: { guard: "mayBeSettled", target: "succeeded", actions: ["recordTransaction", "recordEnd"] },
        QR_READY: { guard: "isByProvider", target: "presented", actions: "recordQr" },
        CONFIRM: { guard: "isByProvider", target: "settling", actions: "recordConfirmation" },
        FAIL: { guard: "isByProvider", target: "cancelled", actions: "recordEnd" },
        OVERTAKEN: { guard: "isOvertaken", target: "cancelled", actions: "recordEnd" },
        CANCEL: { target: "cancelled", actions: "recordEnd" },
        EXPIRE: { target: "expired", actions: "recordEnd" },
        MARK: { target: "created", actions: "recordMark" },
        CLEAR: { guard: "isByProvider", target: "created", actions: "withdrawMark" },
      },
    },
    presented: {
      on: {
        REPORT: { guard: "isByDeviceOrCashier", target: "processing", actions: "recordReport" },
        SETTLED: { guard: "mayBeSettled", target: "succeeded", actions: ["recordTransaction", "recordEnd"] },
        CONFIRM: { guard: "isByProvider", target: "settling", actions: "recordConfirmation" },
        FAIL: { guard: "isByProvider", target: "cancelled", actions: "recordEnd" },
        OVERTAKEN: { guard: "isOvertaken", target: "cancelled", actions: "recordEnd" },
        CANCEL: { target: "cancelled", actions: "recordEnd" },
        EXPIRE: { target: "expired", actions: "recordEnd" },
        MARK: { target: "presented", actions: "recordMark" },
        CLEAR: { guard: "isByProvider", target: "presented", actions: "withdrawMark" },
      },
    },
    processing: {
      on: {
        REPORT: { guard: "isByDeviceOrCashier", target: "processing", actions: "recordReport" },
        ATTEST: { guard: "hasEvidence", target: "settling", actions: "recordAttestation" },
        CONFIRM: { guard: "isByProvider", target: "settling", actions: "recordConfirmation" },
        SETTLED: { target: "succeeded", actions: ["recordTransaction", "recordEnd"] },
        CANCEL: { target: "cancelled", actions: "recordEnd" },
        EXPIRE: { target: "expired", actions: "recordEnd" },
        MARK: { target: "processing", actions: "recordMark" },
        CLEAR: { guard: "isByProvider", target: "processing", actions: "withdrawMark" },
      },
    },
    settling: {
      on: {
        // The station accepts evidence from the assigned device at any time, even while the seam settles.
        REPORT: { guard: "isByDeviceOrCashier", target: "settling", actions: "recordReport" },
        SETTLED: { target: "succeeded", actions: ["recordTransaction", "recordEnd"] },
        MARK: { target: "settling", actions: "recordMark" },
        CLEAR: { guard: "isByProvider", target: "settling", actions: "withdrawMark" },
        REFUSED: [
          { guard: "hasReportsOrConfirmation", target: "processing", actions: "withdrawAttestation" },
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
