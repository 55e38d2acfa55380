/** The report of an outcome, which is evidence, and the cashier's decision. */
import type { Check } from "../check.ts";
import { expectField, expectNow, expectRefused, expectSame, expectStatus, expectThat, objectOf } from "../expect.ts";
import { AMOUNT, type Collection, type World } from "../world.ts";
import { cancelledAssignmentChecks } from "./assignment.ts";
import { lapsingIn, sharedIn } from "./shared-collection.ts";

const REPORT_ROWS = {
  outcome: "outcome | string | machine vocabulary; clients label it themselves",
  provider_reference:
    "provider_reference | string | payment application's own reference for the attempt (e.g. a retrieval or slip number); becomes the reference the cashier's attestation inherits",
  provider_code:
    "provider_code | string | device's coded result, kept verbatim as machine vocabulary, never rendered to staff as a message",
  reported_at: "reported_at | string, date-time",
} as const;
const CODE = "00/ Ümläut <b>";

const reportFields: readonly Check[] = (Object.keys(REPORT_ROWS) as (keyof typeof REPORT_ROWS)[]).map((field) => ({
  id: `report.${field}`,
  capability: "outcome_report",
  after: ["report.accepted"],
  quotes: [
    REPORT_ROWS[field],
    "Evidence, never truth; shown to the cashier beside the settle affordance. All fields required.",
  ],
  run: async (world) => {
    const report = objectOf({ body: sharedIn(world).reported } as never, "report");
    expectField(report, field, field === "reported_at" ? "date-time" : "string");
    const expected = { outcome: "reported_success", provider_reference: sharedIn(world).slip, provider_code: CODE };
    if (field === "reported_at") expectNow("`reported_at`", report[field]);
    else expectSame(`\`${field}\``, report[field], expected[field]);
  },
}));

export const reportChecks: readonly Check[] = [
  {
    id: "report.accepted",
    capability: "outcome_report",
    after: ["assignment.fetched"],
    quotes: [
      "Response JSON: `report` (Reported outcome) and `assignment` (Assignment object, without server_time); both required.",
      "presented | device POST report | any outcome value (success, declined, cancelled, unknown) | processing | report stored and shown to the cashier; no transaction created; order not marked paid; intent not terminated",
      "provider_reference | string | no",
      "provider_code | string | no",
      "`reported_success` = payment application returned an approval;",
      "payments_device_handoff_report | POST | /api/payments/v1/devices/assignment/report/ | device credential",
    ],
    async run(world) {
      const { collection, slip: provider_reference, key: client_idempotency_key } = sharedIn(world);
      const more = { provider_reference, provider_code: CODE, client_idempotency_key };
      const answer = expectStatus(await world.report(collection.intentId, "reported_success", more), 200);
      sharedIn(world).reported = objectOf(answer);
      const assignment = objectOf(answer, "assignment");
      expectSame("`server_time` of the report's assignment", assignment["server_time"], undefined);
      expectSame("`status` of the report's assignment", assignment["status"], "processing");
      const { status: _, ...handedOut } = sharedIn(world).assignment;
      for (const [name, value] of Object.entries(handedOut))
        expectSame(`\`${name}\` of the report's assignment`, assignment[name], value);
    },
  },
  ...reportFields,
  {
    id: "report.processing",
    capability: "outcome_report",
    after: ["report.accepted"],
    quotes: [
      "The service lets a third-party device attached to one restaurant station take part in payment collection without ever holding order money truth.",
      "Effects: moves the intent to `processing`; creates no transaction; does not mark the order paid; does not terminate the intent.",
      "A device cannot settle, decline or terminate a payment intent. A reported outcome is evidence only; the cashier attests or cancels.",
      "A reported success leaves the order unpaid until a cashier attests it.",
    ],
    async run(world) {
      const intent = await world.intent(sharedIn(world).collection.intentId);
      expectSame("`status` of the intent", intent["status"], "processing");
      expectSame("`ended_at` of the intent", intent["ended_at"], null);
      const order = await world.order(sharedIn(world).collection.orderId);
      expectSame("`status` of the order", order["status"], "open");
      expectSame("`transaction` of the order", order["transaction"], null);
    },
  },
  {
    id: "report.shown_to_cashier",
    capability: "outcome_report",
    after: ["report.accepted"],
    quotes: [
      "Evidence, never truth; shown to the cashier beside the settle affordance.",
      "provider_code | string | device's coded result, kept verbatim as machine vocabulary, never rendered to staff as a message",
    ],
    async run(world) {
      const intent = await world.intent(sharedIn(world).collection.intentId);
      expectSame("`settle_offered` of the intent", intent["settle_offered"], true);
      const [report] = intent["reports"] as Record<string, unknown>[];
      expectSame("`outcome` that the cashier sees", report?.["outcome"], "reported_success");
      expectSame("`provider_reference` that the cashier sees", report?.["provider_reference"], sharedIn(world).slip);
      expectSame("`provider_code` that the cashier sees", report?.["provider_code"], CODE);
    },
  },
  {
    id: "report.same_key",
    capability: "outcome_report",
    after: ["report.accepted"],
    quotes: [
      "A retry with the same `client_idempotency_key` returns the original outcome and does not record a second report.",
      "Idempotent under `client_idempotency_key`.",
      "A duplicate report with the same `client_idempotency_key` is not an error; it returns the original outcome.",
      "client_idempotency_key | string | no, but senders should always send it | idempotency key for this report",
    ],
    async run(world) {
      const { collection, slip: provider_reference, key: client_idempotency_key } = sharedIn(world);
      const more = { provider_reference, provider_code: CODE, client_idempotency_key };
      const again = objectOf(expectStatus(await world.report(collection.intentId, "reported_success", more), 200));
      expectSame("answer to the repetition", again, sharedIn(world).reported);
      const other = objectOf(expectStatus(await world.report(collection.intentId, "reported_declined", more), 200));
      expectSame("`report` under the same key", other["report"], sharedIn(world).reported["report"]);
      expectSame("`report_count` of the intent", (await world.intent(collection.intentId))["report_count"], 1);
    },
  },
  {
    id: "assignment.changed",
    capability: "handoff_present",
    after: ["report.accepted"],
    quotes: ["Response 304 with no body when the assignment is unchanged."],
    async run(world) {
      const answer = expectStatus(await world.fetchAssignment(sharedIn(world).etag), 200);
      expectSame("`status` of the assignment", objectOf(answer, "assignment")["status"], "processing");
    },
  },
  {
    id: "report.no_money_field",
    capability: "outcome_report",
    after: ["report.accepted"],
    quotes: [
      "A device supplies no money field and cannot amend one; every money value is authored by the backend from order truth.",
      "report stored and shown to the cashier; no transaction created; order not marked paid; intent not terminated",
    ],
    async run(world) {
      const { collection, slip } = sharedIn(world);
      // It has a new key, so it is another report.
      await world.report(collection.intentId, "reported_success", { amount: "0.01", currency: "XXX" });
      const intent = await world.intent(collection.intentId);
      const kept = (intent["reports"] as Record<string, unknown>[]).map((each) => each["provider_reference"]);
      expectSame("the first report is kept beside a second one", kept.includes(slip), true);
      expectSame("`amount` of the intent", intent["amount"], AMOUNT);
      expectSame("`total` of the order", (await world.order(sharedIn(world).collection.orderId))["total"], AMOUNT);
    },
  },
  {
    id: "attest.settles",
    capability: "settlement",
    after: ["report.accepted"],
    quotes: [
      "processing | cashier attests | cashier confirms from the evidence | succeeded | settlement goes through the payment seam; reference inherited from provider_reference",
      "provider_reference | string | payment application's own reference for the attempt (e.g. a retrieval or slip number); becomes the reference the cashier's attestation inherits",
    ],
    async run(world) {
      const { collection, slip } = sharedIn(world);
      expectStatus(await world.decide(collection.intentId, "attest", { confirms_money_may_have_moved: true }), 200);
      const intent = await world.intent(collection.intentId);
      sharedIn(world).settled = collection;
      expectSame("`status` of the intent", intent["status"], "succeeded");
      const order = await world.order(collection.orderId);
      expectSame("`status` of the order", order["status"], "paid");
      const transaction = objectOf({ body: order } as never, "transaction");
      expectSame("`amount` of the transaction", transaction["amount"], AMOUNT);
      expectSame("`reference` of the transaction", transaction["reference"], slip);
      // Neither a second attestation nor a late cancellation changes the settlement.
      await world.decide(collection.intentId, "attest", { confirms_money_may_have_moved: true });
      const cancelled = await world.decide(collection.intentId, "cancel");
      expectThat("cancellation of a settled intent", cancelled.status >= 400, "a refusal", cancelled.status);
      expectSame("`status` of the intent", (await world.intent(collection.intentId))["status"], "succeeded");
      expectSame("the order afterwards", await world.order(collection.orderId), order);
    },
  },
  {
    id: "report.after_settled",
    capability: "outcome_report",
    after: ["attest.settles"],
    quotes: [
      "409 | intent_not_actionable | intent already settled, cancelled or expired; the body carries a `status` field",
      "Also named as non-actionable intent states: settled, cancelled, expired (a report on any of them is refused, see Errors).",
    ],
    async run(world) {
      const body = expectRefused(
        await world.report(sharedIn(world).collection.intentId, "reported_success"),
        409,
        "intent_not_actionable",
      );
      expectSame("`status` of the refusal", body["status"], "succeeded");
      expectSame(
        "`report_count` of the intent",
        ((await world.intent(sharedIn(world).collection.intentId))["report_count"] as number) >= 1,
        true,
      );
    },
  },
];

/** These run while a collection lapses: refused reports do not change it. */
export const refusedReportChecks: readonly Check[] = [
  {
    id: "report.not_assigned",
    capability: "outcome_report",
    after: ["expiry.begins"],
    quotes: [
      "404 | handoff_not_assigned | the intent is not assigned to this device",
      "intent_id | integer | yes | must be assigned to this device",
    ],
    async run(world) {
      expectRefused(await world.report(999_999_999, "reported_success"), 404, "handoff_not_assigned");
    },
  },
  {
    id: "report.outcome_vocabulary",
    capability: "outcome_report",
    after: ["expiry.begins"],
    quotes: [
      "outcome | string | yes | one of `reported_success`, `reported_declined`, `reported_cancelled`, `reported_unknown`",
    ],
    async run(world) {
      const answer = await world.report(lapsingIn(world).collection.intentId, "success");
      expectStatus(answer, 400);
      expectSame(
        "`status` of the intent",
        (await world.intent(lapsingIn(world).collection.intentId))["status"],
        "presented",
      );
    },
  },
  {
    id: "report.required_fields",
    capability: "outcome_report",
    after: ["expiry.begins"],
    quotes: [
      "intent_id | integer | yes | must be assigned to this device",
      "outcome | string | yes | one of `reported_success`, `reported_declined`, `reported_cancelled`, `reported_unknown`",
    ],
    async run(world) {
      const { intentId } = lapsingIn(world).collection;
      const outcome = "reported_success";
      for (const json of [{ outcome }, { intent_id: intentId }, { intent_id: "first", outcome }])
        expectStatus(await world.companion.send("POST", "assignment/report/", { json }), 400);
      expectSame("`status` of the intent", (await world.intent(intentId))["status"], "presented");
    },
  },
  {
    id: "report.same_key_later",
    capability: "outcome_report",
    after: ["auth.revoked"],
    quotes: [
      "A retry with the same `client_idempotency_key` returns the original outcome and does not record a second report.",
      "A duplicate report with the same `client_idempotency_key` is not an error; it returns the original outcome.",
    ],
    async run(world) {
      const { settled, slip: provider_reference, key: client_idempotency_key, reported } = sharedIn(world);
      const more = { provider_reference, provider_code: CODE, client_idempotency_key };
      const again = await world.report(settled.intentId, "reported_success", more);
      expectSame("answer to the repetition after the end", objectOf(expectStatus(again, 200)), reported);
    },
  },
];

/** These run after the companion has a new credential. */
export const decisionChecks: readonly Check[] = [
  {
    id: "assignment.gone",
    capability: "handoff_present",
    after: ["auth.revoked"],
    quotes: ["null when there is nothing to collect"],
    async run(world) {
      expectSame("`assignment`", objectOf(expectStatus(await world.fetchAssignment(), 200))["assignment"], null);
    },
  },
  {
    id: "report.declined",
    capability: "outcome_report",
    after: ["auth.revoked"],
    quotes: [
      "A report moves the intent to `processing` whatever the reported outcome, including a decline; the device cannot release an order for a second collection.",
      "After a reported decline the cashier still is offered settle; this is correct.",
      "`reported_declined` = it returned a decline",
    ],
    async run(world) {
      sharedIn(world).collection = await reportNew(world, "reported_declined");
      const intent = await world.intent(sharedIn(world).collection.intentId);
      expectSame("`status` of the intent", intent["status"], "processing");
      expectSame("`settle_offered` of the intent", intent["settle_offered"], true);
      expectRefused(await world.createIntent("cash", sharedIn(world).collection.orderId), 409, "collection_active");
    },
  },
  {
    id: "attest.after_decline",
    capability: "settlement",
    after: ["report.declined"],
    quotes: ["After a reported decline the cashier still is offered settle; this is correct."],
    async run(world) {
      const { intentId, orderId } = sharedIn(world).collection;
      expectStatus(await world.decide(intentId, "attest", { confirms_money_may_have_moved: true }), 200);
      expectSame("`status` of the intent", (await world.intent(intentId))["status"], "succeeded");
      expectSame("`status` of the order", (await world.order(orderId))["status"], "paid");
    },
  },
  {
    id: "report.cancelled",
    capability: "outcome_report",
    after: ["attest.after_decline"],
    quotes: [
      "`reported_cancelled` = guest or cashier abandoned it in the app",
      "client_idempotency_key | string | no, but senders should always send it | idempotency key for this report",
    ],
    async run(world) {
      const collection = await reportNew(world, "reported_cancelled", { client_idempotency_key: undefined });
      expectSame("`status` of the intent", (await world.intent(collection.intentId))["status"], "processing");
      sharedIn(world).collection = collection;
    },
  },
  {
    id: "cancel.by_cashier",
    capability: "settlement",
    after: ["report.cancelled"],
    quotes: ["processing | cashier cancels | cashier decides from the evidence"],
    async run(world) {
      expectStatus(await world.decide(sharedIn(world).collection.intentId, "cancel"), 200);
      expectSame(
        "`status` of the intent",
        (await world.intent(sharedIn(world).collection.intentId))["status"],
        "cancelled",
      );
      const attested = await world.decide(sharedIn(world).collection.intentId, "attest");
      expectThat("attestation of a cancelled intent", attested.status >= 400, "a refusal", attested.status);
      expectSame("`status` of the order", (await world.order(sharedIn(world).collection.orderId))["status"], "open");
    },
  },
  ...cancelledAssignmentChecks,
  {
    id: "report.after_cancelled",
    capability: "outcome_report",
    after: ["cancel.by_cashier"],
    quotes: [
      "409 | intent_not_actionable | intent already settled, cancelled or expired; the body carries a `status` field",
    ],
    async run(world) {
      const answer = await world.report(sharedIn(world).collection.intentId, "reported_success");
      expectSame("`status` of the refusal", expectRefused(answer, 409, "intent_not_actionable")["status"], "cancelled");
      expectSame(
        "`status` of the intent",
        (await world.intent(sharedIn(world).collection.intentId))["status"],
        "cancelled",
      );
      await world.voidOrder(sharedIn(world).collection.orderId);
    },
  },
  {
    id: "report.unknown",
    capability: "outcome_report",
    after: ["cancel.by_cashier"],
    quotes: [
      "`reported_unknown` is a valid answer for a timed-out or unusable collection.",
      "`reported_unknown` = nothing usable returned or the wait timed out.",
    ],
    async run(world) {
      const collection = await reportNew(world, "reported_unknown");
      expectSame("`status` of the intent", (await world.intent(collection.intentId))["status"], "processing");
      expectSame("`status` of the order", (await world.order(collection.orderId))["status"], "open");
      await world.discard(collection);
    },
  },
  {
    id: "report.other_route",
    capability: "outcome_report",
    after: ["report.unknown"],
    quotes: ["404 | handoff_not_assigned | the intent is not assigned to this device"],
    async run(world) {
      const cash = await world.collect("cash");
      expectRefused(await world.report(cash.intentId, "reported_success"), 404, "handoff_not_assigned");
      expectSame("`status` of the cash intent", (await world.intent(cash.intentId))["status"], "created");
      await world.discard(cash);
    },
  },
];

async function reportNew(world: World, outcome: string, more: object = {}): Promise<Collection> {
  const collection = await world.collect("smart_pos");
  const fetched = expectStatus(await world.fetchAssignment(), 200);
  sharedIn(world).etag = fetched.headers.get("etag") ?? "";
  const report = objectOf(expectStatus(await world.report(collection.intentId, outcome, more), 200), "report");
  expectSame("`outcome` of the report", report["outcome"], outcome);
  // The request has neither field, but the answer must have both.
  for (const name of ["provider_reference", "provider_code"]) expectField(report, name, "string");
  const [shown] = (await world.intent(collection.intentId))["reports"] as Record<string, unknown>[];
  expectSame("`outcome` that the cashier sees", shown?.["outcome"], outcome);
  return collection;
}
