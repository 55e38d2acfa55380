import { describe, expect, test } from "vitest";
import type { ReferenceScope, StatementLine } from "../../services/reconciliation/formats/format.ts";
import { stripeActivity } from "../../services/reconciliation/formats/stripe.ts";
import { lineIdentity } from "../../services/reconciliation/line-identity.ts";
import { linesOf, parseText } from "./formats/samples.ts";

const LINE: StatementLine = {
  position: 2,
  kind: "payment",
  providerType: "Settled",
  amountMinor: 1_250n,
  currency: "EUR",
  feeMinor: -25n,
  netMinor: 1_225n,
  tipMinor: undefined,
  bookedOn: "2026-03-01",
  valueOn: undefined,
  occurredAt: undefined,
  providerReference: "8835",
  paymentReference: "",
  merchantReference: "order-7",
  payoutReference: "batch-89",
  terminal: "T-1",
  account: "",
  text: "",
  details: {},
};
const WITHOUT_REFERENCE: StatementLine = { ...LINE, providerReference: "" };
const identity = (line: StatementLine, scope: ReferenceScope = "year"): string =>
  lineIdentity(line, scope).toString("hex");

describe("the identity of a line with the provider's reference", () => {
  test.each<[string, Partial<StatementLine>]>([
    ["at another position", { position: 900 }],
    ["with more columns", { details: { ARN: "1.23E+022" } }],
    ["with a corrected amount", { amountMinor: 1_240n, netMinor: 1_215n }],
    ["with another fee", { feeMinor: -30n }],
    ["in another batch", { payoutReference: "batch-90" }],
    ["booked on another day of the year", { bookedOn: "2026-03-02" }],
  ])("a line %s: is the same line", (_, change) => {
    expect(identity({ ...LINE, ...change })).toBe(identity(LINE));
  });

  test.each<[string, Partial<StatementLine>]>([
    ["the payout of the same id", { kind: "payout", providerType: "Payout" }],
    ["the refund of the same id", { kind: "refund", providerType: "Refunded" }],
    ["another modification of the payment", { paymentReference: "8836" }],
    ["the other side of a conversion, in another currency", { currency: "CHF" }],
    ["a line of another account in the same file", { account: "M-2" }],
    ["the same reference a year later", { bookedOn: "2027-03-01" }],
  ])("%s: is another line", (_, change) => {
    expect(identity({ ...LINE, ...change })).not.toBe(identity(LINE));
  });

  test.each<[string, Partial<StatementLine>]>([
    ["on another day", { bookedOn: "2026-03-02" }],
    ["with another amount", { amountMinor: 1_240n }],
  ])("a bank that numbers its entries again each day: the same reference %s is another line", (_, change) => {
    expect(identity({ ...LINE, ...change }, "day")).not.toBe(identity(LINE, "day"));
  });

  test("a provider's unique id: the same line whichever columns and time zone the export has", async () => {
    const exports = [
      "balance_transaction_id,reporting_category,currency,gross,fee,net,created\ntxn_1,charge,eur,17,0.5,16.5,2026-01-01 00:30:00\n",
      "net,fee,gross,currency,charge_id,balance_transaction_id,reporting_category,created_utc\n16.50,0.50,17.00,EUR,ch_1,txn_1,charge,2025-12-31 23:30:00\n",
    ];
    const lines = (await Promise.all(exports.map((text) => parseText(stripeActivity, text)))).flatMap(linesOf);
    const identities = lines.map((line) => identity(line, stripeActivity.referenceScope));
    expect(identities).toHaveLength(2);
    expect(new Set(identities).size).toBe(1);
  });

  test("a provider's unique id: the refund of the same id is another line", () => {
    const refund: StatementLine = { ...LINE, kind: "refund", providerType: "Refunded" };
    expect(identity(refund, "ever")).not.toBe(identity(LINE, "ever"));
  });
});

describe("the identity of a line without a reference", () => {
  test("the same content at another position: is the same line", () => {
    expect(identity({ ...WITHOUT_REFERENCE, position: 7, details: { note: "x" } })).toBe(identity(WITHOUT_REFERENCE));
  });

  test.each<[string, Partial<StatementLine>]>([
    ["amount", { amountMinor: 1_251n }],
    ["day", { bookedOn: "2026-03-02" }],
    ["instant", { occurredAt: "2026-03-01T12:00:00Z" }],
    ["merchant's reference", { merchantReference: "order-8" }],
    ["terminal", { terminal: "T-2" }],
    ["text", { text: "Table 4" }],
  ])("a line with another %s: is another line", (_, change) => {
    expect(identity({ ...WITHOUT_REFERENCE, ...change })).not.toBe(identity(WITHOUT_REFERENCE));
  });

  test("a line whose reference is the word `content`: has another identity", () => {
    expect(identity({ ...LINE, providerReference: "content" })).not.toBe(identity(WITHOUT_REFERENCE));
  });
});

test("an identity has 32 bytes", () => {
  expect(lineIdentity(LINE, "year")).toHaveLength(32);
});
