import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StatementRefusedError } from "../../../services/reconciliation/formats/format.ts";
import { stripeActivity, stripePayoutReconciliation } from "../../../services/reconciliation/formats/stripe.ts";
import { collected, dividedAt } from "./chunks.ts";
import { outlineOf, totalsOf } from "./outline.ts";
import { linesOf, NO_OPTIONS, parseSample, parseText, problemsOf, sampleText } from "./samples.ts";

const textOf = async (sample: string): Promise<string> =>
  (await collected(sampleText(`stripe/${sample}.csv`))).join("");

describe("Stripe's payout reconciliation", () => {
  it("reads currencies in any case and amounts with any count of decimals, and fee rows without ids", async () => {
    const records = await parseSample(stripePayoutReconciliation, "stripe/payout.csv");
    expect(problemsOf(records)).toEqual([]);
    expect(linesOf(records).map(outlineOf)).toEqual([
      "2 payment charge 2500 USD fee -95 net 2405 | txn_1 of pi_1 for ORDER-1 in po_1",
      "3 refund refund -1000 USD fee 0 net -1000 | txn_2 of pi_1 for ORDER-1 in po_1",
      "4 fee fee -50 USD fee 0 net -50 | txn_3 in po_1",
      "5 chargeback dispute -1500 USD fee -1500 net -3000 | txn_4 of ch_0 for ORDER-0 in po_1",
      "6 chargeback_reversal dispute_reversal 3335 USD fee 1500 net 4835 | txn_5 of pi_9 for ORDER-0 in po_1",
      "7 payout payout -3190 USD fee 0 net -3190 | txn_6 in po_1",
      "8 payout payout -500 USD fee -5 net -505 | txn_7 in po_2",
      "9 fee fee -200 USD fee 0 net -200 |",
    ]);
  });

  it("compares a payout with its transactions, and a transaction without a payout with nothing", async () => {
    const records = await parseSample(stripePayoutReconciliation, "stripe/payout.csv");
    expect(totalsOf(records)).toEqual(["transactions of payout po_1: 3190 USD, 3190 by its lines"]);
  });

  it("reports a payout row that breaks gross less fee, and a payout that differs from its transactions", async () => {
    const records = await parseSample(stripePayoutReconciliation, "stripe/off-payout.csv");
    expect(totalsOf(records)).toEqual([
      "gross less fees of line 3: 2305 USD, 2400 by its lines",
      "transactions of payout po_3: -2305 USD, 2405 by its lines",
    ]);
  });

  it("reads amounts with a decimal comma, and refuses rows with another separator than the rows before", async () => {
    const records = await parseSample(stripePayoutReconciliation, "stripe/payout-comma.csv");
    expect(linesOf(records).map(outlineOf)).toEqual([
      "2 payment charge 500 JPY fee -18 net 482 | txn_c1 in po_9",
      "3 payment charge 110413 EUR fee -337 net 110076 | txn_c2 in po_8",
      "4 adjustment risk_reserved_funds -2519 EUR fee 0 net -2519 | txn_c3 in po_8",
      "5 payout payout -107557 EUR fee 0 net -107557 | txn_c4 in po_8",
    ]);
    expect(problemsOf(records)).toEqual(['6 gross: "12.50" is not a decimal number.']);
    expect(totalsOf(records)).toEqual(["transactions of payout po_8: 107557 EUR, 107557 by its lines"]);
  });

  it("keeps columns that the exporter chose, except those with data of persons", async () => {
    const [charge] = linesOf(await parseSample(stripePayoutReconciliation, "stripe/payout.csv"));
    expect(charge?.text).toBe("Table 7");
    expect(charge?.details).toEqual({
      source_id: "ch_1",
      charge_id: "ch_1",
      automatic_payout_effective_at: "2026-02-02 00:00:00",
      "payment_metadata[order_id]": "ORDER-1",
      customer_facing_amount: "25",
      customer_facing_currency: "usd",
    });
  });

  it("keeps neither the phone nor the address of a customer", async () => {
    const columns = "balance_transaction_id,created_utc,currency,gross,fee,net,reporting_category";
    const personal = "customer_phone,customer_name,customer_address_line1,card_address_city,shipping_address_city";
    const text = `${columns},${personal}\ntxn_1,2026-03-02 10:00:00,eur,1,0,1,charge,+41 79,Gina,Street 1,Basel,Bern\n`;
    const [line] = linesOf(await parseText(stripeActivity, text));
    expect(line?.details).toEqual({});
  });

  it("reads an instant from UTC or by the declared time zone, and none from a local time alone", async () => {
    const timeOf = async (sample: string, timeZone?: string) =>
      linesOf(await parseSample(stripePayoutReconciliation, `stripe/${sample}.csv`, { timeZone }))[0];
    expect(await timeOf("payout")).toMatchObject({
      occurredAt: undefined,
      bookedOn: "2026-01-30",
      valueOn: "2026-02-01",
    });
    expect(await timeOf("payout", "America/New_York")).toMatchObject({ occurredAt: "2026-01-30T15:11:12.000Z" });
    expect(await timeOf("off-payout")).toMatchObject({ occurredAt: "2026-01-30T15:11:12Z", bookedOn: "2026-01-30" });
  });
});

describe("Stripe's balance changes from activity", () => {
  it("reads currencies without decimals and with three, and refuses rows with too many or another separator", async () => {
    const records = await parseSample(stripeActivity, "stripe/activity.csv");
    expect(linesOf(records).map(outlineOf)).toEqual([
      "2 payment charge 500 JPY fee -18 net 482 | txn_j1 for ORDER-J1",
      "4 adjustment charge_failure -500 JPY fee 0 net -500 | txn_j2 for ORDER-J1",
      "5 adjustment other_adjustment 1125 KWD fee 0 net 1125 | txn_k1",
    ]);
    expect(problemsOf(records)).toEqual([
      '3 gross: "12,3" is not a decimal number.',
      "6 gross: 4.5 has more decimals than JPY has (0).",
    ]);
  });

  it("reads the dashboard's balance history", async () => {
    const records = await parseSample(stripeActivity, "stripe/balance-history.csv");
    expect(linesOf(records).map(outlineOf)).toEqual([
      "2 payment charge 1700 EUR fee -50 net 1650 | txn_h1 in po_h1",
      "3 payout payout -1650 EUR fee 0 net -1650 | txn_h2 in po_h1",
      "4 payout_reversal payout_failure 1650 EUR fee 0 net 1650 | txn_h3 in po_h1",
    ]);
    expect(totalsOf(records)).toEqual([]);
  });

  it("reads the itemised report of payouts, which has the time at which each leaves the balance", async () => {
    const records = await parseSample(stripeActivity, "stripe/payouts.csv");
    expect(linesOf(records).map(outlineOf)).toEqual([
      "2 payout payout -1650 EUR fee 0 net -1650 | txn_p1 in po_6",
      "3 payout_reversal payout_reversal 1650 EUR fee 0 net 1650 | txn_p2 in po_6",
    ]);
    expect(linesOf(records)[0]).toMatchObject({ bookedOn: "2026-03-04", occurredAt: "2026-03-04T00:00:00Z" });
  });

  it("are distinguished from the payout reconciliation by the column of payouts", async () => {
    const detected = async (sample: string) => {
      const head = await textOf(sample);
      return [stripePayoutReconciliation.detect(head), stripeActivity.detect(head)];
    };
    expect(await detected("payout")).toEqual([true, false]);
    expect(await detected("activity")).toEqual([false, true]);
    expect(await detected("balance-history")).toEqual([false, true]);
    expect(await detected("payouts")).toEqual([false, true]);
  });

  it("reads instants in ISO 8601", async () => {
    const header = "balance_transaction_id,reporting_category,currency,gross,fee,net,created_utc";
    const text = `${header}\ntxn_1,charge,eur,5,0,5,2026-03-01T11:00:00Z\n`;
    const [line] = linesOf(await parseText(stripeActivity, text));
    expect(line).toMatchObject({ bookedOn: "2026-03-01", occurredAt: "2026-03-01T11:00:00Z" });
  });

  it("refuses an empty file, and an export without a column of dates", async () => {
    const header = "balance_transaction_id,reporting_category,currency,gross,fee,net";
    await expect(parseText(stripeActivity, "")).rejects.toMatchObject({ code: "empty_file" });
    await expect(parseText(stripeActivity, `${header}\n`)).rejects.toMatchObject({ code: "unknown_header" });
  });
});

describe("Stripe's reports", () => {
  it("give the same lines for each order of the columns and each division into chunks", async () => {
    const rows = (await textOf("payout"))
      .trim()
      .split("\n")
      .map((row) => row.split(","));
    const columns = rows[0]?.length ?? 0;
    const whole = linesOf(await parseText(stripePayoutReconciliation, await textOf("payout")));
    const property = fc.asyncProperty(
      fc.shuffledSubarray([...Array(columns).keys()], { minLength: columns, maxLength: columns }),
      fc.array(fc.nat(), { maxLength: 5 }),
      async (order, places) => {
        const text = rows.map((row) => order.map((index) => row[index] ?? "").join(",")).join("\n");
        const divided = stripePayoutReconciliation.parse(dividedAt(text, places), NO_OPTIONS);
        expect(linesOf(await collected(divided))).toEqual(whole);
      },
    );
    await fc.assert(property, { numRuns: 40 });
  });

  it("throw nothing but refusals, whatever is damaged", async () => {
    const text = await textOf("payout");
    const damage = fc.record({ at: fc.nat(text.length - 1), with: fc.constantFrom("", '"', ",", "\n", "9", "E", "-") });
    const property = fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 4 }), async (damages) => {
      const damaged = damages.reduce((all, { at, with: part }) => all.slice(0, at) + part + all.slice(at + 1), text);
      const error = await parseText(stripePayoutReconciliation, damaged).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (error !== undefined) expect(error).toBeInstanceOf(StatementRefusedError);
    });
    await fc.assert(property, { numRuns: 100 });
  });
});
