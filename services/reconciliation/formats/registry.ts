/** All formats of statement files. */
import { adyenSettlementDetails } from "./adyen.ts";
import { CAMT_053, CAMT_054 } from "./camt/camt.ts";
import { refuseOtherMessage } from "./camt/messages.ts";
import { mappedCsv } from "./csv/mapped.ts";
import { type StatementFormat, StatementRefusedError } from "./format.ts";
import { FORMAT_LIMITS } from "./limits.ts";
import { refuseInterimReport } from "./mt940/fields.ts";
import { MT940 } from "./mt940.ts";
import { paypalActivity } from "./paypal/paypal-activity.ts";
import { paypalStl, paypalTrr } from "./paypal/typed-report.ts";
import { sandbox } from "./sandbox.ts";
import { stripeActivity, stripePayoutReconciliation } from "./stripe.ts";
import { sumup } from "./sumup.ts";

/** In the order in which people see them. */
export const STATEMENT_FORMATS: readonly StatementFormat[] = [
  sumup,
  adyenSettlementDetails,
  stripePayoutReconciliation,
  stripeActivity,
  paypalStl,
  paypalTrr,
  paypalActivity,
  CAMT_053,
  CAMT_054,
  MT940,
  sandbox,
  mappedCsv,
];

const BY_NAME: ReadonlyMap<string, StatementFormat> = new Map(STATEMENT_FORMATS.map((format) => [format.name, format]));

export function statementFormat(name: string): StatementFormat | undefined {
  return BY_NAME.get(name);
}

/** The formats that certainly fit the beginning of a file; a person confirms one. */
export function detectFormats(head: string): readonly StatementFormat[] {
  const beginning = head.slice(0, FORMAT_LIMITS.headCharacters);
  return STATEMENT_FORMATS.filter((format) => detects(format, beginning));
}

/** Throws the refusal of a file that is certainly not a readable statement: no mapping and no other format helps. */
export function refuseOtherReport(head: string): void {
  refuseOtherMessage(head);
  // The text of an entry may look like a field of an interim report.
  if (!MT940.detect(head)) refuseInterimReport(head);
}

/** A header that a format would refuse is not of that format. */
function detects(format: StatementFormat, head: string): boolean {
  try {
    return format.detect(head);
  } catch (error) {
    if (!(error instanceof StatementRefusedError)) throw error;
    return false;
  }
}
