/** One line of text for each record, for the tests of formats that have many kinds of lines. */
import type { StatementLine, StatementRecord } from "../../../services/reconciliation/formats/format.ts";

/** For example "2 payment Settled 1700 EUR fee -34 net 1666 | 882… of 881… for ORDER-1 in 41". */
export function outlineOf(line: StatementLine): string {
  const sums = Object.entries({ fee: line.feeMinor, net: line.netMinor })
    .filter(([, minor]) => minor !== undefined)
    .map(([name, minor]) => ` ${name} ${minor}`);
  const references = Object.entries({
    "": line.providerReference,
    " of": line.paymentReference,
    " for": line.merchantReference,
    " in": line.payoutReference,
  }).map(([word, reference]) => (reference === "" ? "" : `${word} ${reference}`));
  return `${line.position} ${line.kind} ${line.providerType} ${line.amountMinor} ${line.currency}${sums.join("")} |${references.join("")}`;
}

/** One text for each total, for example "batch 41 of Bistro: 0 EUR, 0 by its lines". */
export function totalsOf(records: readonly StatementRecord[]): readonly string[] {
  return records.flatMap((record) =>
    record.type === "total"
      ? [
          `${record.total.name}: ${record.total.statedMinor} ${record.total.currency}, ${record.total.computedMinor} by its lines`,
        ]
      : [],
  );
}
