/**
 * Judges the collections by QR of a trial. Every guest pays, so a QR ends unpaid only where a fault kept the service from its
 * provider. Otherwise the callback settles it or, where that is lost, the first query about it.
 */
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import type { BegunFault, EndedCollection, History, QrCourse } from "./history.ts";
import { SLOW_MS } from "./outages.ts";

type Qr = EndedCollection & { readonly qr: QrCourse };

/** With fewer QRs chance decides how many of them a fault ends. */
const LEAST_QRS = 20;

interface QrJudgement {
  /** QRs that ended unpaid without a reason, and a sentence when most did. */
  readonly unpaid: readonly string[];
  readonly late: readonly string[];
  readonly summary: string;
}

export function judgeQrs(history: History): QrJudgement {
  const qrs = history.ended.flatMap((one): Qr[] => (one.qr === undefined ? [] : [{ ...one, qr: one.qr }]));
  const paid = qrs.filter(({ end }) => end === "paid");
  const mayEnd = (one: Qr): boolean => duringFaults(history, one).some((fault) => fault.qrs === "may_end");
  const sentences = qrs
    .filter((one) => one.end !== "paid" && !mayEnd(one))
    .map(({ intentId, qr, acknowledgedAtMs }) => {
      const fault = history.duringFault(acknowledgedAtMs);
      return `Intent ${intentId}, whose QR the guest would have paid, ended with ${qr.endReason}${fault}.`;
    });
  if (qrs.length >= LEAST_QRS && paid.length * 2 <= qrs.length)
    sentences.push(`Of ${qrs.length} QRs ${paid.length} were paid.`);
  const slowestMs = Math.round(paid.reduce((most, one) => Math.max(most, waitedMs(one)), 0));
  return {
    unpaid: sentences,
    late: paid.flatMap((one) => lateness(history, one)),
    summary: `${qrs.length} collections by QR, ${paid.length} paid, the slowest ${slowestMs} ms after its creation`,
  };
}

const waitedMs = ({ qr, acknowledgedAtMs }: Qr): number => acknowledgedAtMs - qr.createdAtMs;

const duringFaults = (history: History, { qr, acknowledgedAtMs }: Qr): readonly BegunFault[] =>
  history.faultsBetween(qr.askedAtMs, acknowledgedAtMs);

/**
 * A sentence for a QR that was paid too late. Without a fault of the provider's side the first query finds the payment at the
 * latest. Then the station must confirm, which takes one lost attempt and an outage at most, and the cashier must read it, which
 * takes another outage at most. A fault of the provider's side has no fair bound: a query that it delays is repeated after a
 * pause that grows, and a task that a killed process has claimed waits for the end of the claim.
 */
function lateness(history: History, one: Qr): string[] {
  const faults = duringFaults(history, one);
  if (faults.length === 0 || faults.some((fault) => fault.qrs !== undefined)) return [];
  const outagesMs = faults.reduce((sum, { withinMs }) => sum + 2 * withinMs, 0);
  const withinMs = PROVIDER_LIMITS.firstPollMs + PROVIDER_LIMITS.stationAttemptMs + outagesMs + SLOW_MS;
  const ms = Math.round(waitedMs(one));
  if (ms <= withinMs) return [];
  const during = history.duringFault(one.qr.createdAtMs);
  return [`Intent ${one.intentId} was paid by QR ${ms} ms after its creation instead of ${withinMs} ms${during}.`];
}
