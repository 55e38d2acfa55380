/**
 * How much of a device's text a station's state keeps. A reference and a code are evidence and are kept verbatim, as long as
 * a request may be; a state with many of them would be hundreds of kilobytes in the memory of each gateway.
 */
import type { PaymentIntent, Report } from "./payment-intent.ts";
import { STATE_LIMITS } from "./settings.ts";

export function textOfReport({ providerReference, providerCode }: Report): number {
  return providerReference.length + providerCode.length;
}

export function textOfIntent({ reports, attestation }: PaymentIntent): number {
  return reports.reduce((sum, report) => sum + textOfReport(report), attestation?.reference.length ?? 0);
}

/** Of things that are the older the earlier they come: the newest ones whose text fits together. */
export function withinText<T>(oldestFirst: readonly T[], textOf: (thing: T) => number): readonly T[] {
  let left: number = STATE_LIMITS.olderReportText;
  const tooLong = oldestFirst.findLastIndex((thing) => {
    left -= textOf(thing);
    return left < 0;
  });
  return oldestFirst.slice(tooLong + 1);
}
