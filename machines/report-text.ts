/**
 * Bounds the device text in a station's state. References and codes are evidence, so the state keeps them unchanged, and each
 * may be as long as a request. Without a bound, many of them would use hundreds of kilobytes in the memory of each gateway.
 */
import { digestOf } from "./digest.ts";
import type { PaymentIntent, Report } from "./payment-intent.ts";
import { STATE_LIMITS } from "./settings.ts";

export function textOfReport({ providerReference, providerCode }: Report): number {
  return providerReference.length + providerCode.length;
}

/** The digest of a report's reference and code, by which the station recognises the report without its text. */
export function digestOfText({ providerReference, providerCode }: Pick<Report, "providerReference" | "providerCode">) {
  return digestOf(JSON.stringify([providerReference, providerCode]));
}

export function textOfIntent({ reports, attestation }: PaymentIntent): number {
  return reports.reduce((sum, report) => sum + textOfReport(report), attestation?.reference.length ?? 0);
}

/** The newest items whose texts together are within the bound. */
export function withinText<T>(oldestFirst: readonly T[], lengthOf: (item: T) => number): readonly T[] {
  let left: number = STATE_LIMITS.olderReportText;
  const firstTooLong = oldestFirst.findLastIndex((item) => {
    left -= lengthOf(item);
    return left < 0;
  });
  return oldestFirst.slice(firstTooLong + 1);
}
