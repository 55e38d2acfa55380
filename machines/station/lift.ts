/** What older machine versions wrote, in the shape of the current one. One function per version. */
import type { Attestation, PaymentIntent, Report } from "../payment-intent.ts";
import type { WireCommit } from "./commit.ts";
import type { AttestationRow, IntentRow, StoredReplyRow } from "./rows.ts";

const REVISION_UNKNOWN = 0;

type AttestationFrom1 = Omit<Attestation, "by">;
type ReportFrom2 = Omit<Report, "key"> & Partial<Pick<Report, "key">>;
type IntentFrom2 = Omit<
  PaymentIntent,
  "moneyMayHaveMoved" | "reasonSinceEnd" | "orderRevision" | "cancelKey" | "reports" | "formerReports"
> & {
  readonly reports: readonly ReportFrom2[];
};
type IntentFrom1 = Omit<IntentFrom2, "provider" | "endReason" | "attestation"> & {
  readonly attestation: AttestationFrom1 | null;
};

/** Version 1 knew no providers: no station had one, every settlement was attested by a cashier, nothing was in doubt, and one order at most was open. */
export function liftFrom1(written: WireCommit): WireCommit {
  const { state } = written;
  return {
    ...written,
    state: {
      ...state,
      provider: { configId: null, revision: 0 },
      doubts: [],
      waitingOrders: [],
      intent: state.intent === null ? null : liftIntent(state.intent),
      ended: state.ended.map(liftRowFrom1),
    },
  };
}

/**
 * Version 2 told the end of a QR without keeping that it has to be told, and kept no mark: what the reports of an active
 * intent say is its mark now, and an ended one had its doubt when it ended. A doubt that was pushed out is not known. Nor is
 * the order's revision that an intent was made from: every description that comes after the lift is newer.
 */
export function liftFrom2(written: WireCommit): WireCommit {
  const { state } = written;
  return {
    ...written,
    state: {
      ...state,
      lease: state.lease === null ? null : { ...state.lease, sessionId: null },
      lostLease: null,
      endedSessions: [],
      doubtsForgottenThrough: 0,
      untoldEnds: [],
      lateEvidence: [],
      olderReasons: [],
      intent: state.intent === null ? null : liftIntent(state.intent),
      ended: state.ended.map(liftRowFrom2),
      replies: state.replies.map(liftReplyFrom2),
    },
  };
}

/**
 * An intent as any version wrote it, for what is kept outside of commits: the audit copy keeps an intent as it was when
 * it ended.
 */
export function liftIntent(intent: IntentFrom1 | IntentFrom2 | PaymentIntent): PaymentIntent {
  const { attestation } = intent;
  const lifted = {
    provider: null,
    endReason: "",
    moneyMayHaveMoved: markOf(intent),
    reasonSinceEnd: "",
    orderRevision: REVISION_UNKNOWN,
    cancelKey: "",
    formerReports: [],
    ...intent,
  } as const;
  const reports = intent.reports.map((report) => ({ key: "", ...report }));
  return { ...lifted, reports, attestation: attestation === null ? null : { by: "cashier", ...attestation } };
}

function markOf({ reports }: Pick<IntentFrom1, "reports">): PaymentIntent["moneyMayHaveMoved"] {
  const outcomes = reports.map((report) => report.outcome);
  if (outcomes.includes("reported_success")) return "success_reported";
  return outcomes.includes("reported_unknown") ? "outcome_unknown" : "";
}

function liftRowFrom1(row: IntentRow): IntentRow {
  const [attestation, endedAfterMs, status] = row.slice(16) as unknown as [
    AttestationRow | null,
    IntentRow[17],
    IntentRow[18],
  ];
  const by = 0;
  const lifted = attestation === null ? null : [...attestation, by];
  return [...row.slice(0, 16), lifted, endedAfterMs, status, null, null] as unknown as IntentRow;
}

function liftRowFrom2(row: IntentRow): IntentRow {
  const [before, reports, after] = [row.slice(0, 14), row[14], row.slice(15, 21)];
  return [...before, reports.map(withoutKey), ...after, null, REVISION_UNKNOWN, "", [], null] as unknown as IntentRow;
}

function liftReplyFrom2(row: StoredReplyRow): StoredReplyRow {
  const [commandId, intentId, report] = row;
  if (typeof intentId !== "number" || typeof report !== "object") return row;
  return [commandId, intentId, withoutKey(report)] as unknown as StoredReplyRow;
}

/** Reports were made under keys that nothing has kept. */
function withoutKey(row: readonly unknown[]): readonly unknown[] {
  return [...row.slice(0, 5), ""];
}
