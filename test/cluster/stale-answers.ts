/** Finds the answers of a trial in which displays and companions got old state. */
import { PAID_SHOWN_MS } from "../../machines/settings.ts";
import type { Fetched, History, OpenOrder, Shown } from "./history.ts";

/** A display may show state that is at most this old (contract, "Poll around every two seconds"; invariant I8). */
export const STALE_AFTER_MS = 1_500;

/** How far an order is, by what a display shows as the status of its collection. */
const PROGRESS: Readonly<Record<string, number>> = { "": 0, created: 1, presented: 2, processing: 3, succeeded: 4 };
/** Of an order whose collection has ended. */
const ENDED = 4;

/** A known fact about an order: that it exists, or how far it is. */
interface Known {
  readonly atMs: number;
  readonly orderDisplayNumber: number;
  /** At least so far. */
  readonly progress: number;
  readonly isPaid: boolean;
  /** For a sentence: what the order is known to be. */
  readonly what: string;
}

/**
 * Sentences for answers that lack a fact that was known for longer than a display may lag: they show an older order, a paid
 * order as unpaid, a collection as less advanced than it is, an order as just paid long after its payment, no order while one
 * was open, or not the collection that waited for the companion.
 */
export function staleAnswers(history: History): string[] {
  const shownAt = Map.groupBy(history.shown, ({ stationId }) => stationId);
  const during = (atMs: number): string => history.duringFault(atMs);
  return [
    ...[...shownAt].flatMap(([stationId, shown]) => {
      const cancelled = history.ended.filter((one) => one.stationId === stationId && one.end === "cancelled");
      const numbers = new Set(cancelled.map(({ orderDisplayNumber }) => orderDisplayNumber));
      return staleAt(shown, { known: knownAt(history, stationId), cancelled: numbers }, during);
    }),
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
  { stationId, gateway, askedAtMs, assignment, handed }: Fetched,
  duringFault: (atMs: number) => string,
): string[] {
  const waitedMs = askedAtMs - handed.atMs;
  const intentId = assignment?.intentId;
  if (intentId === handed.intentId || waitedMs <= STALE_AFTER_MS) return [];
  const what = `${gateway} gave the companion of station ${stationId} ${intentId === undefined ? "nothing" : `intent ${intentId}`}`;
  return [`${what} ${Math.round(waitedMs)} ms after intent ${handed.intentId} was created${duringFault(askedAtMs)}.`];
}

/** What is known about the orders of a station, in the order of time. */
function knownAt({ shown, progressed, ended }: History, stationId: number): readonly Known[] {
  const ofDisplays = shown
    .filter((one) => one.stationId === stationId && one.orderDisplayNumber > 0)
    .map(({ answeredAtMs, orderDisplayNumber, intentStatus }) => ({
      atMs: answeredAtMs,
      orderDisplayNumber,
      ...progressOf(intentStatus),
    }));
  const ofClients = progressed
    .filter((one) => one.stationId === stationId)
    .map(({ atMs, orderDisplayNumber, intentStatus }) => ({ atMs, orderDisplayNumber, ...progressOf(intentStatus) }));
  const ofEnds = ended
    .filter((one) => one.stationId === stationId)
    .map(({ acknowledgedAtMs, orderDisplayNumber, end }) => ({
      atMs: acknowledgedAtMs,
      orderDisplayNumber,
      progress: ENDED,
      isPaid: end === "paid",
      what: end,
    }));
  return [...ofDisplays, ...ofClients, ...ofEnds].toSorted((one, other) => one.atMs - other.atMs);
}

function progressOf(intentStatus: string): Pick<Known, "progress" | "isPaid" | "what"> {
  const isPaid = intentStatus === "succeeded";
  const what = isPaid ? "paid" : intentStatus === "" ? "known" : `known as ${intentStatus}`;
  return { progress: PROGRESS[intentStatus] ?? 0, isPaid, what };
}

function staleAt(
  shown: readonly Shown[],
  { known, cancelled }: { readonly known: readonly Known[]; readonly cancelled: ReadonlySet<number> },
  duringFault: (atMs: number) => string,
): string[] {
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
      const { stationId, gateway, state, intentStatus, orderDisplayNumber, askedAtMs } = one;
      const { progress, isPaid } = progressOf(intentStatus);
      // A display shows an order without a status before its collection and again after the collection was cancelled.
      const mayHaveEnded = intentStatus === "" && cancelled.has(orderDisplayNumber);
      const status = intentStatus === "" || isPaid ? "" : `, ${intentStatus},`;
      const answer = `${gateway} showed "${state}"${status} of order ${orderDisplayNumber} at station ${stationId}`;
      if (
        newest !== undefined &&
        rank({ orderDisplayNumber, progress: mayHaveEnded ? ENDED : progress }) < rank(newest)
      ) {
        const { orderDisplayNumber: order, what, atMs } = newest;
        return [
          `${answer} ${Math.round(askedAtMs - atMs)} ms after order ${order} was ${what}${duringFault(askedAtMs)}.`,
        ];
      }
      const paidMs = askedAtMs - (paid.get(orderDisplayNumber)?.atMs ?? askedAtMs);
      return isPaid && paidMs > PAID_SHOWN_MS + STALE_AFTER_MS
        ? [`${answer} ${Math.round(paidMs)} ms after it was paid${duringFault(askedAtMs)}.`]
        : [];
    });
}

/** A number that grows with each event at a station. */
function rank({ orderDisplayNumber, progress }: Pick<Known, "orderDisplayNumber" | "progress">): number {
  return (ENDED + 1) * orderDisplayNumber + progress;
}
