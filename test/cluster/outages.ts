/** How long the clients of a trial had to wait during a fault, and whether that was too long. */
import { type AcknowledgedStep, type History, NO_STATION } from "./history.ts";
import { PAUSE_MS } from "./trial-client.ts";

/** The effect of one fault on the clients. */
export interface FaultResult {
  readonly name: string;
  readonly target: string;
  /**
   * The longest time without success of a cashier or companion, heartbeats included, and of a display, and the number of
   * stations with a gap.
   */
  readonly commandOutageMs: number;
  readonly pollOutageMs: number;
  /** The slowest answer, including all its attempts, even if none failed. Undefined when there was no request. */
  readonly slowest: AcknowledgedStep | undefined;
  readonly stationsWithGap: number;
  readonly wrongErrors: number;
  /** The bound of the longest outage and of the slowest answer. */
  readonly withinMs: number;
  /** Whether no attempt may fail. */
  readonly failsNothing: boolean;
  /** Whether it was the death of one server, which most stations do not notice. */
  readonly isDeath: boolean;
}

/** A shorter failure counts as a repeated attempt and not as an outage. */
const GAP_MS = 1_000;
/** The slowest answer allowed at a station whose log has its leader. */
export const SLOW_MS = 2_000;
/** After the death of one server at most this share of the stations may have a gap. */
const STATIONS_WITH_GAP = 0.4;

export const kindOf = (step: string): "display" | "heartbeat" | "command" =>
  step === "display" || step === "heartbeat" ? step : "command";
export const isPoll = (step: string): boolean => kindOf(step) === "display";
export const isCommand = (step: string): boolean => kindOf(step) === "command";

export const waitedMs = ({ startedAtMs, endedAtMs }: AcknowledgedStep): number => endedAtMs - startedAtMs;
const failedMs = ({ failedAtMs, endedAtMs }: AcknowledgedStep): number => endedAtMs - (failedAtMs ?? endedAtMs);

/** The outages of the clients between these two moments. */
export function outagesOf({ steps }: Pick<History, "steps">, fromMs: number, toMs: number) {
  const during = steps.filter(({ startedAtMs, endedAtMs }) => endedAtMs >= fromMs && startedAtMs <= toMs);
  const longest = (isOfKind: (step: string) => boolean): number =>
    Math.round(during.reduce((ms, one) => Math.max(ms, isOfKind(one.step) ? failedMs(one) : 0), 0));
  const withGap = during.filter(
    (one) => waitedMs(one) > SLOW_MS + PAUSE_MS || (isCommand(one.step) && failedMs(one) > GAP_MS),
  );
  return {
    commandOutageMs: longest((step) => !isPoll(step)),
    pollOutageMs: longest(isPoll),
    slowest: during.toSorted((one, other) => waitedMs(other) - waitedMs(one))[0],
    stationsWithGap: new Set(withGap.map(({ stationId }) => stationId).filter((id) => id !== NO_STATION)).size,
  };
}

/** The result up to the moment when the target works again: later requests may wait for an election. */
export function resultUntilAwake(
  result: FaultResult,
  { steps }: Pick<History, "steps">,
  { fromMs, awakeAtMs, withinMs }: { readonly fromMs: number; readonly awakeAtMs: number; readonly withinMs: number },
): FaultResult {
  // A request that still waits at that time counts up to that time.
  const before = steps.flatMap((step) => {
    const { startedAtMs, endedAtMs, failedAtMs } = step;
    if (endedAtMs <= awakeAtMs) return [step];
    const hasFailed = failedAtMs !== undefined && failedAtMs < awakeAtMs;
    const soFar = { ...step, endedAtMs: awakeAtMs, failedAtMs: hasFailed ? failedAtMs : undefined };
    return startedAtMs < awakeAtMs ? [soFar] : [];
  });
  const outages = outagesOf({ steps: before }, fromMs, awakeAtMs);
  return { ...result, name: `${result.name}, until it wakes`, withinMs, ...outages };
}

/** Sentences for an outage that was too long, and for the death of a server that too many stations noticed. */
export function lateness(result: FaultResult, stationCount: number): string[] {
  const { withinMs, commandOutageMs, pollOutageMs, stationsWithGap, isDeath, failsNothing } = result;
  const sentences: string[] = [];
  const outageMs = Math.max(commandOutageMs, pollOutageMs);
  // A client tries again after a pause, so the measured outage is longer than the real one by at most one pause.
  if (outageMs > withinMs + PAUSE_MS) sentences.push(`${titleOf(result)}: ${outageMs} ms instead of ${withinMs} ms.`);
  if (failsNothing && outageMs > 0) sentences.push(`${titleOf(result)}: a request failed, for ${outageMs} ms.`);
  if (isDeath && stationsWithGap > STATIONS_WITH_GAP * stationCount) {
    sentences.push(`${titleOf(result)}: ${stationsWithGap} of ${stationCount} stations saw a gap.`);
  }
  return sentences;
}

/** Sentences for answers that were too slow, even if no attempt failed. */
export function slowness(result: FaultResult): string[] {
  const { withinMs, slowest } = result;
  if (slowest === undefined) return [];
  const { step, stationId, failedAtMs } = slowest;
  const ms = Math.round(waitedMs(slowest));
  return ms > withinMs + (failedAtMs === undefined ? 0 : PAUSE_MS)
    ? [`${titleOf(result)}: ${step} at station ${stationId} took ${ms} ms instead of ${withinMs} ms.`]
    : [];
}

const titleOf = ({ name, target }: FaultResult): string => `${name} (${target})`;
