/** Finds the answers of a trial in which displays and companions got old state. */
import { PAID_SHOWN_MS } from "../../machines/settings.ts";
import type { Fetched, History, OpenOrder, Shown } from "./history.ts";

/** A display may show state that is at most this old (contract, "Poll around every two seconds"; invariant I8). */
export const STALE_AFTER_MS = 1_500;

/** A known fact about an order: that it exists, or that it was paid. */
interface Known {
  readonly atMs: number;
  readonly orderDisplayNumber: number;
  readonly isPaid: boolean;
}

/**
 * Sentences for answers that lack a fact that was known for longer than a display may lag: they show an older order, a paid
 * order as unpaid, an order as just paid long after its payment, no order while one was open, or not the collection that
 * waited for the companion.
 */
export function staleAnswers(history: History): string[] {
  const shownAt = Map.groupBy(history.shown, ({ stationId }) => stationId);
  const during = (atMs: number): string => history.duringFault(atMs);
  return [
    ...[...shownAt].flatMap(([stationId, shown]) => staleAt(shown, knownAt(history, stationId), during)),
    ...history.opened.flatMap((order) => idleDuring(order, shownAt.get(order.stationId) ?? [], during)),
    ...history.fetched.flatMap((one) => staleFetch(one, during)),
  ];
}

function idleDuring(
  { stationId, orderDisplayNumber, fromMs, untilMs }: OpenOrder,
  shown: readonly Shown[],
  duringFault: (atMs: number) => string,
): string[] {
  return shown.flatMap(({ state, askedAtMs, answeredAtMs, gateway }) => {
    const openMs = askedAtMs - fromMs;
    if (state !== "idle" || openMs <= STALE_AFTER_MS || answeredAtMs >= untilMs) return [];
    const what = `${gateway} showed no order at station ${stationId}`;
    return [`${what} ${Math.round(openMs)} ms after order ${orderDisplayNumber} was opened${duringFault(askedAtMs)}.`];
  });
}

function staleFetch(
  { stationId, gateway, askedAtMs, intentId, handed }: Fetched,
  duringFault: (atMs: number) => string,
): string[] {
  const waitedMs = askedAtMs - handed.atMs;
  if (intentId === handed.intentId || waitedMs <= STALE_AFTER_MS) return [];
  const what = `${gateway} gave the companion of station ${stationId} ${intentId === undefined ? "nothing" : `intent ${intentId}`}`;
  return [`${what} ${Math.round(waitedMs)} ms after intent ${handed.intentId} was created${duringFault(askedAtMs)}.`];
}

/** What is known about the orders of a station, in the order of time. */
function knownAt({ shown, ended }: History, stationId: number): readonly Known[] {
  const ofDisplays = shown
    .filter((one) => one.stationId === stationId && one.orderDisplayNumber > 0)
    .map((one) => ({ ...one, atMs: one.answeredAtMs, isPaid: one.state === "paid" }));
  const ofCashiers = ended
    .filter((one) => one.stationId === stationId)
    .map((one) => ({ ...one, atMs: one.acknowledgedAtMs, isPaid: one.end === "paid" }));
  return [...ofDisplays, ...ofCashiers].toSorted((one, other) => one.atMs - other.atMs);
}

function staleAt(shown: readonly Shown[], known: readonly Known[], duringFault: (atMs: number) => string): string[] {
  const paid = new Map<number, Known>();
  for (const one of known) if (one.isPaid && !paid.has(one.orderDisplayNumber)) paid.set(one.orderDisplayNumber, one);
  const next = known.values();
  let upcoming = next.next().value;
  let newest: Known | undefined;
  return shown
    .filter(({ orderDisplayNumber }) => orderDisplayNumber > 0)
    .toSorted((one, other) => one.askedAtMs - other.askedAtMs)
    .flatMap((one) => {
      for (; upcoming !== undefined && upcoming.atMs + STALE_AFTER_MS < one.askedAtMs; upcoming = next.next().value) {
        if (newest === undefined || rank(upcoming) > rank(newest)) newest = upcoming;
      }
      const { stationId, gateway, state, orderDisplayNumber, askedAtMs } = one;
      const isPaid = state === "paid";
      const answer = `${gateway} showed "${state}" of order ${orderDisplayNumber} at station ${stationId}`;
      if (newest !== undefined && rank({ orderDisplayNumber, isPaid }) < rank(newest)) {
        const { orderDisplayNumber: order, isPaid: wasPaid, atMs } = newest;
        const after = `${Math.round(askedAtMs - atMs)} ms after order ${order} was ${wasPaid ? "paid" : "known"}`;
        return [`${answer} ${after}${duringFault(askedAtMs)}.`];
      }
      const paidMs = askedAtMs - (paid.get(orderDisplayNumber)?.atMs ?? askedAtMs);
      return isPaid && paidMs > PAID_SHOWN_MS + STALE_AFTER_MS
        ? [`${answer} ${Math.round(paidMs)} ms after it was paid${duringFault(askedAtMs)}.`]
        : [];
    });
}

/** A number that grows with each event at a station. */
function rank({ orderDisplayNumber, isPaid }: Pick<Known, "orderDisplayNumber" | "isPaid">): number {
  return 2 * orderDisplayNumber + (isPaid ? 1 : 0);
}
