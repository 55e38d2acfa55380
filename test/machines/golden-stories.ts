/** The stations whose commits the golden files keep for each machine version. Together they use every row and field. */
import { digestOf } from "../../machines/digest.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import type { Commit } from "../../machines/station/commit.ts";
import {
  aCounter,
  aQrCounter,
  aServedCounter,
  CASEY,
  COMPANION,
  COMPANION_DEVICE,
  DISPLAY_DEVICE,
  type Scenario,
} from "./scenario.ts";

export const STORIES: Record<string, () => Scenario> = {
  "a-described-station": () => aCounter(),
  "an-open-order": () => aServedCounter(),
  "a-created-intent": () => aServedCounter().picks("smart_pos", { key: "31:create:a" }),
  "a-reported-intent": () =>
    aServedCounter()
      .picks("smart_pos")
      .waits(900)
      .fetches()
      .waits(1_100)
      .reports("reported_declined", { key: "701:report:a", code: "51" })
      .waits(2_000)
      .reports("reported_success", { key: "701:report:b", reference: "RRN-1", code: "00" }),
  "a-settling-intent": () =>
    aServedCounter().picks("attested_terminal").waits(500).attests({ key: "31:attest:a", reference: "SLIP-9" }),
  "a-refused-settlement": () =>
    aServedCounter().picks("cash").attests({ key: "31:attest:a" }).waits(40).refusesToSettle("order_changed"),
  "a-used-reference": () =>
    aServedCounter()
      .picks("attested_terminal")
      .attests({ key: "31:attest:a", reference: "SLIP-9" })
      .waits(40)
      .refusesToSettle("reference_already_used", {
        earlier: {
          orderId: 44,
          orderDisplayNumber: 3,
          stationName: "Bar",
          amountMinor: "980",
          currency: "EUR",
          settledAtMs: 1_795_000_000_000,
        },
      })
      .waits(9_000)
      .attests({ key: "31:attest:b", reference: "SLIP-9", confirms: true })
      .waits(30)
      .settles(9_002),
  "a-presented-qr": () => aQrCounter().picks("dynamic_qr", { key: "31:create:a" }).waits(300).givesQr(),
  "a-confirmed-qr": () =>
    aQrCounter().picks("dynamic_qr").waits(300).givesQr().waits(9_000).confirms({ key: "provider:81:PAY-1" }),
  "every-kind-of-qr-end": () => everyKindOfQrEnd(),
  "every-kind-of-end": () => everyKindOfEnd(),
  "every-unclear-reason": () => everyUnclearReason(),
  "every-order-obstacle": () => everyOrderObstacle(),
  "a-silent-companion": () =>
    aServedCounter()
      .picks("smart_pos")
      .fetches()
      .cancels()
      .picks("smart_pos", { confirms: true })
      .fetches()
      .waits(180_000)
      .ticks()
      .reports("reported_success", { key: "701:report:late", reference: "RRN-1" }),
  "a-full-memory": () => aFullMemory(),
};

/** The newest commit of a story. */
export function commitOf(story: () => Scenario): Commit {
  const commit = story().commits.at(-1);
  if (commit === undefined) throw new Error("The story commits nothing.");
  return commit;
}

function everyKindOfEnd(): Scenario {
  return aServedCounter()
    .picks("smart_pos")
    .cancels()
    .picks("cash")
    .waits(180_000)
    .ticks()
    .picks("smart_pos")
    .reports("reported_unknown")
    .attests()
    .settles(9_001)
    .reports("reported_success", { key: "701:report:late" })
    .order({ orderId: 502, orderDisplayNumber: 8, status: "voided", revision: 2 })
    .describesDevice({ ...DISPLAY_DEVICE, status: "revoked", revision: 2 })
    .noticesSilence(COMPANION)
    .describesDevice({ ...COMPANION_DEVICE, status: "suspended", revision: 2 })
    .releases()
    .send({ type: "lease_acquire", requestDigest: digestOf("{}") }, CASEY, "lease_acquire:31:a");
}

function everyKindOfQrEnd(): Scenario {
  return aQrCounter()
    .picks("dynamic_qr")
    .waits(300)
    .givesQr()
    .waits(4_000)
    .confirms({ key: "provider:81:PAY-1" })
    .settles(9_001)
    .order({ orderId: 502, orderDisplayNumber: 8 })
    .picks("dynamic_qr")
    .fails("provider_timed_out")
    .picks("dynamic_qr")
    .givesQr({ reference: "PAY-3" })
    .fails("payment_declined")
    .picks("dynamic_qr")
    .givesQr({ reference: "PAY-4" })
    .waits(180_000)
    .ticks()
    .leased()
    .confirms({ reference: "PAY-4", key: "provider:81:PAY-4" })
    .order({ orderId: 503, orderDisplayNumber: 9 })
    .picks("smart_pos", { key: "31:create:b" })
    .reports("reported_unknown")
    .cancels()
    .picks("cash", { confirms: true });
}

function everyUnclearReason(): Scenario {
  const counter = aQrCounter();
  for (let turn = 1; turn <= STATE_LIMITS.unclearCollections; turn += 1)
    counter
      .order({ orderId: 700 + turn, orderDisplayNumber: 200 + turn })
      .picks("dynamic_qr")
      .givesQr()
      .cancels()
      .reportsEnd();
  return counter
    .order({ orderId: 751, orderDisplayNumber: 251 })
    .picks("dynamic_qr")
    .givesQr()
    .differs("amount_mismatch", { key: "provider:differs:a" })
    .fails("provider_expired")
    .order({ orderId: 752, orderDisplayNumber: 252 })
    .picks("smart_pos")
    .fetches()
    .reports("reported_unknown", { key: "701:report:a", blocked: "device_frozen" })
    .order({ orderId: 752, orderDisplayNumber: 252, status: "paid", revision: 2 })
    .order({ orderId: 753, orderDisplayNumber: 253 })
    .picks("dynamic_qr")
    .givesQr()
    .differs("currency_mismatch");
}

function everyOrderObstacle(): Scenario {
  return aQrCounter()
    .picks("dynamic_qr")
    .givesQr()
    .order({ amountMinor: "1300", revision: 2 })
    .picks("dynamic_qr", { confirms: true })
    .givesQr({ reference: "PAY-2" })
    .order({ status: "voided", revision: 3 })
    .order({ orderId: 502, orderDisplayNumber: 8 })
    .picks("smart_pos")
    .fetches()
    .order({ orderId: 502, orderDisplayNumber: 8, status: "paid", revision: 2 })
    .order({ orderId: 503, orderDisplayNumber: 9 })
    .picks("smart_pos")
    .fetches()
    .order({ orderId: 503, orderDisplayNumber: 9, amountMinor: "1300", revision: 2 });
}

function aFullMemory(): Scenario {
  const counter = aServedCounter();
  for (let turn = 1; turn <= 16; turn += 1) {
    counter
      .order({ orderId: 600 + turn, orderDisplayNumber: 100 + turn })
      .renews()
      .waits(4_000)
      .picks("smart_pos", { key: `31:create:${uuid(turn)}` })
      .waits(900)
      .fetches()
      .waits(6_000)
      .reports("reported_success", {
        key: `701:report:${uuid(turn)}`,
        reference: `RRN-20495731${9_000 + turn}`,
        code: "00",
      })
      .waits(3_000)
      .attests({ key: `31:attest:${uuid(turn)}` })
      .waits(30)
      .settles(9_000 + turn);
  }
  return counter;
}

/** A key as long as the keys of real clients. */
const uuid = (turn: number): string => `5f0c2a9e-8d1b-4c37-9a55-${String(turn).padStart(12, "0")}`;
