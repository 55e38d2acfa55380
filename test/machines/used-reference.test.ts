/** A slip that has already settled an order: the seam names that order, and the cashier's confirmation settles this one. */
import { describe, expect, it } from "vitest";
import type { EarlierSale } from "../../machines/payment-intent.ts";
import { aFetchedCounter, aServedCounter, type Scenario } from "./scenario.ts";

const EARLIER: EarlierSale = {
  orderId: 44,
  orderDisplayNumber: 3,
  stationName: "Bar",
  amountMinor: "980",
  currency: "EUR",
  settledAtMs: 1_795_000_000_000,
};
const REFUSAL = { ok: false, code: "reference_already_used", earlierSale: EARLIER } as const;
const attested = (): Scenario =>
  aServedCounter().picks("attested_terminal").attests({ reference: "SLIP-9", key: "31:attest:a" });
const refused = (): Scenario => attested().refusesToSettle("reference_already_used", { earlier: EARLIER });

describe("an attestation whose reference has settled an order before", () => {
  it("the seam refuses it: the answer and the event name the earlier order, and the intent is created again", () => {
    const counter = refused();
    expect(counter.reply).toEqual({ ...REFUSAL, status: "created" });
    expect(counter.commits.at(-1)?.events).toEqual([
      { type: "settlement_refused", intentId: 1_001, code: "reference_already_used", earlier: EARLIER },
    ]);
    expect(counter.intent).toMatchObject({ status: "created", attestation: null });
  });

  it("it is repeated with its key: the same answer, and nothing happens", () => {
    const counter = refused().attests({ reference: "SLIP-9", key: "31:attest:a" });
    expect([counter.repeated, counter.reply]).toEqual([true, { ...REFUSAL, status: "created" }]);
  });

  it.each([
    ["another reference", "attested_terminal", { reference: "SLIP-9" }],
    ["a reference where there was none", "cash", {}],
  ] as const)("its key comes with %s: refused, and nothing happens", (_what, route, body) => {
    const key = "31:attest:a";
    const counter = aServedCounter()
      .picks(route)
      .attests({ ...body, key })
      .refusesToSettle();
    const { reply } = counter;
    expect(counter.attests({ reference: "SLIP-8", key }).reply).toEqual({ ok: false, code: "idempotency_key_reused" });
    expect([counter.happened, counter.attests({ ...body, key }).reply]).toEqual([[], reply]);
  });

  it("its key comes without the reference, or with spaces around it: the same answer", () => {
    for (const body of [{}, { reference: " SLIP-9 " }])
      expect(refused().attests({ ...body, key: "31:attest:a" }).reply).toEqual({ ...REFUSAL, status: "created" });
  });

  it("the cashier confirms it: the seam is asked with the confirmation, which the audit log keeps", () => {
    const counter = refused().attests({ reference: "SLIP-9", confirms: true });
    expect(counter.commits.at(-1)?.events).toEqual([
      {
        type: "settlement_started",
        intentId: 1_001,
        cashierId: 31,
        reference: "SLIP-9",
        confirmsReferenceAlreadyUsed: true,
      },
    ]);
    expect(counter.intent?.attestation).toMatchObject({ confirmsReferenceAlreadyUsed: true });
    expect(counter.settles().intent?.status).toBe("succeeded");
  });

  it.each([
    ["as many reports as the cashier knew", 2, true],
    ["a report that the cashier did not know", 1, undefined],
  ] as const)("the confirmation arrives when there are %s", (_what, known, confirmed) => {
    const counter = aFetchedCounter()
      .reports("reported_success", { reference: "RRN-1", key: "51:report:a" })
      .reports("reported_success", { reference: "RRN-2", key: "51:report:b" });
    const { intent } = counter.attests({ confirms: known });
    expect(intent?.attestation).toMatchObject({ reference: "RRN-2" });
    expect(intent?.attestation?.confirmsReferenceAlreadyUsed).toBe(confirmed);
  });

  it("the cashier has not confirmed it: neither the attestation nor the event has the field", () => {
    const counter = attested();
    expect(counter.intent?.attestation).not.toHaveProperty("confirmsReferenceAlreadyUsed");
    expect(counter.commits.at(-1)?.events[0]).not.toHaveProperty("confirmsReferenceAlreadyUsed");
  });

  it("the seam's answer has an unknown field: the station keeps only the known fields", () => {
    const more = { ...EARLIER, lines: ["x".repeat(9_000)] };
    expect(attested().refusesToSettle("reference_already_used", { earlier: more }).reply).toEqual({
      ...REFUSAL,
      status: "created",
    });
  });
});
