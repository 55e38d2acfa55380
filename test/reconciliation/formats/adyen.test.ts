import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { adyenSettlementDetails } from "../../../services/reconciliation/formats/adyen.ts";
import { StatementRefusedError } from "../../../services/reconciliation/formats/format.ts";
import { FORMAT_LIMITS } from "../../../services/reconciliation/formats/limits.ts";
import { collected, dividedAt, oneChunk } from "./chunks.ts";
import { outlineOf, totalsOf } from "./outline.ts";
import { linesOf, NO_OPTIONS, parseSample, parseText, problemsOf, sampleText } from "./samples.ts";

const parse = (sample: string, timeZone?: string) =>
  parseSample(adyenSettlementDetails, `adyen/${sample}.csv`, { timeZone });
const textOf = async (sample: string): Promise<string> => (await collected(sampleText(`adyen/${sample}.csv`))).join("");

describe("Adyen's settlement details report", () => {
  it("gives each type its kind, and the provider's references to entries of payments only", async () => {
    const records = await parse("batch");
    expect(problemsOf(records)).toEqual([]);
    expect(linesOf(records).map(outlineOf)).toEqual([
      "2 adjustment Balancetransfer 1000 EUR net 1000 | in 41",
      "3 payment Settled 1700 EUR fee -34 net 1666 | 8825000000000001 of 8815000000000001 for ORDER-1 in 41",
      "4 payment Settled 20 EUR fee -25 net -5 | 8815000000000002 of 8815000000000002 for ORDER-2 in 41",
      "5 refund Refunded -500 EUR net -500 | 8835000000000001 of 8815000000000001 for ORDER-1 in 41",
      "6 payment Settled 5000 EUR fee -100 net 4900 | 8815000000000003 of 8815000000000003 for ORDER-3 in 41",
      "7 refund Refunded -5000 EUR net -5000 | 8815000000000003 of 8815000000000003 for ORDER-3 in 41",
      "8 chargeback Chargeback -100 EUR fee -200 net -300 | 8845000000000004 of 8815000000000004 for ORDER-4 in 41",
      "9 chargeback_reversal ChargebackReversed 5200 EUR fee -11 net 5189 | 8845000000000005 of 8815000000000005 for ORDER-5 in 41",
      "10 chargeback SecondChargeback -5200 EUR net -5200 | 8845000000000006 of 8815000000000006 for ORDER-6 in 41",
      "11 refund_reversal RefundedReversed 400 EUR net 400 | 8845000000000007 of 8815000000000007 for ORDER-7 in 41",
      "12 fee PaymentCost -10 EUR net -10 | 8855000000000001 of 8815000000000001 for ORDER-1 in 41",
      "13 fee Fee -80 EUR net -80 | in 41",
      "14 fee InvoiceDeduction -6 EUR net -6 | in 41",
      "15 adjustment DepositCorrection 300 EUR net 300 | in 41",
      "16 payout MerchantPayout -2354 EUR net -2354 | in 41",
    ]);
  });

  it("keeps the free text of entries of the account as text", async () => {
    const lines = linesOf(await parse("batch"));
    expect(lines.filter(({ providerReference }) => providerReference === "").map(({ text }) => text)).toEqual([
      "Balancetransfer · Balancetransfer from batch 40",
      "Transaction Fees March 2026",
      "Invoice NL202602000533 Discounts (1/2)",
      "Deposit Correction",
      "TX3488899933XT batch 41, BistroBasel",
    ]);
  });

  it("gives each batch one header, and one total, which is zero", async () => {
    const records = await parse("batch");
    expect(records.filter(({ type }) => type === "header")).toEqual([
      {
        type: "header",
        header: {
          account: "BistroBasel",
          currency: "EUR",
          fromDate: undefined,
          toDate: undefined,
        },
      },
    ]);
    expect(totalsOf(records)).toEqual(["batch 41 of BistroBasel: 0 EUR, 0 by its lines"]);
  });

  it("reads a gratuity as the tip within the gross, with the sign of the gross, whichever sign the file has", async () => {
    const tips = ["", "1.00", "1.00", "-1.00"];
    const rows = (await textOf("batch")).trim().split("\n");
    const [header = "", , sale = "", , refund = ""] = rows;
    const tipped = [header, sale, refund, refund].map((row, at) => row.replace(/[^,]*,[^,]*$/, `${tips[at]},`));
    const text = [header.replace("Reserved4", "Gratuity Amount"), ...tipped.slice(1)].join("\n");
    const records = await parseText(adyenSettlementDetails, text);
    expect(linesOf(records).map(({ amountMinor, tipMinor }) => [amountMinor, tipMinor])).toEqual([
      [1700n, 100n],
      [-500n, -100n],
      [-500n, -100n],
    ]);
  });

  it("reports a batch that does not add up to zero, and a row whose fee and net disagree", async () => {
    const records = await parse("off-balance");
    expect(totalsOf(records)).toEqual([
      "gross less fees of line 4: 4900 EUR, 4910 by its lines",
      "batch 89 of BistroBasel: 0 EUR, -5000 by its lines",
    ]);
  });

  it("reports a bounded count of rows whose fee and net disagree", async () => {
    const [header, , , row] = (await textOf("off-balance")).split("\n");
    const many = Array.from({ length: 2 * FORMAT_LIMITS.rowTotals }, () => row).join("\n");
    const totals = totalsOf(await parseText(adyenSettlementDetails, `${header}\n${many}\n`));
    expect(totals).toHaveLength(FORMAT_LIMITS.rowTotals + 1);
  });

  it("finds columns by name in any order, and keeps columns that are added at the end, also a damaged ARN", async () => {
    const records = await parse("reordered");
    expect(problemsOf(records)).toEqual([]);
    const [converted, plain] = linesOf(records);
    expect(linesOf(records).map(outlineOf)).toEqual([
      "2 payment Settled 1000 INR | DVBVQ8KVWFFW7661 of FVD6HH297FKD7K61 for ORDER-8 in 1136",
      "3 payment Settled 100 USD fee -14 net 86 | DVBVQ8KVWFFW7662 of FVD6HH297FKD7K62 for ORDER-9 in 1136",
      "4 payout MerchantPayout -83 USD net -83 | in 1136",
    ]);
    expect(converted).toMatchObject({
      terminal: "P400-1",
      account: "BistroGoa",
      details: { ARN: "1.2302025304E+022", "Net Currency": "USD", "Net Debit (NC)": "0.03", Metadata: '{"table":"7"}' },
    });
    expect(plain?.details).toEqual({ "Company Account": "Bistro", "Exchange Rate": "1" });
    expect(totalsOf(records)).toEqual(["batch 1136 of BistroGoa: 0 USD, 0 by its lines"]);
  });

  it("reads a local time by the zone beside it, and reads none when the zone's name has two meanings", async () => {
    const lines = linesOf(await parse("reordered", "Europe/Berlin"));
    expect(lines.map(({ occurredAt }) => occurredAt)).toEqual([
      "2026-10-31T04:05:39-07:00",
      undefined,
      "2026-10-31T23:05:40-07:00",
    ]);
    expect(lines.map(({ bookedOn }) => bookedOn)).toEqual(["2026-10-31", "2026-10-31", "2026-10-31"]);
  });

  it("reports bad rows with their reasons, and reads the rows after them", async () => {
    const records = await parse("damaged");
    expect(problemsOf(records)).toEqual([
      '2 Psp Reference: "8.81500E+15" is an id that a spreadsheet has changed; import the file as the provider made it.',
      '3 Creation Date: "3/2/2026 12:00" is no date that the report has.',
      '4 Creation Date: "2026-02-30 12:00:00" is no date that the report has.',
      "5 Gross Credit (GC): 17.005 has more decimals than EUR has (2).",
      '6 Gross Currency: "EURO" is no ISO 4217 currency.',
      "7 Gross Credit (GC): The row has an amount without its currency.",
      "8 Net Credit (NC): The row has no amount.",
      "9 Net Credit (NC): The row has 15 fields, and the header has 25 columns.",
    ]);
    expect(linesOf(records).map(({ position }) => position)).toEqual([10]);
    expect(totalsOf(records)).toEqual(["batch 41 of BistroBasel: 0 EUR, 1700 by its lines"]);
  });

  it("is detected by its header, in any order", async () => {
    expect(adyenSettlementDetails.detect(await textOf("batch"))).toBe(true);
    expect(adyenSettlementDetails.detect(await textOf("reordered"))).toBe(true);
    expect(adyenSettlementDetails.detect("Company Account,Merchant Account,Batch Number,Journal Type\n")).toBe(false);
    await expect(parseText(adyenSettlementDetails, "Date,Amount\n")).rejects.toMatchObject({ code: "unknown_header" });
  });

  it("gives the same lines for each order of the columns, and the same records for each division into chunks", async () => {
    const text = await textOf("batch");
    const rows = text.trim().split("\n").map(cells);
    const columns = rows[0]?.length ?? 0;
    const whole = await parseText(adyenSettlementDetails, text);
    const property = fc.asyncProperty(
      fc.shuffledSubarray([...Array(columns).keys()], { minLength: columns, maxLength: columns }),
      fc.array(fc.nat(), { maxLength: 5 }),
      async (order, places) => {
        const shuffled = rows.map((row) => order.map((index) => row[index] ?? "").join(",")).join("\n");
        expect(linesOf(await parseText(adyenSettlementDetails, shuffled))).toEqual(linesOf(whole));
        const divided = adyenSettlementDetails.parse(dividedAt(text, places), NO_OPTIONS);
        expect(await collected(divided)).toEqual(whole);
      },
    );
    await fc.assert(property, { numRuns: 40 });
  });

  it("throws nothing but refusals, whatever is damaged, and loses no row without a reason", async () => {
    const text = await textOf("batch");
    const damage = fc.record({ at: fc.nat(text.length - 1), with: fc.constantFrom("", '"', ",", "\n", "9", "E", "-") });
    const property = fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 4 }), async (damages) => {
      const damaged = damages.reduce(
        (whole, { at, with: part }) => whole.slice(0, at) + part + whole.slice(at + 1),
        text,
      );
      try {
        const records = await collected(adyenSettlementDetails.parse(oneChunk(damaged), NO_OPTIONS));
        const isWhole = problemsOf(records).length === 0;
        if (isWhole) expect(linesOf(records).length).toBeGreaterThanOrEqual(15 - damages.length);
      } catch (error) {
        expect(error).toBeInstanceOf(StatementRefusedError);
      }
    });
    await fc.assert(property, { numRuns: 100 });
  });
});

/** The fields of a row. The sample has one field in quotes, which contains a comma. */
function cells(row: string): readonly string[] {
  return row.match(/"[^"]*"|[^,]+|(?<=^|,)(?=,|$)/g) ?? [];
}
