/** The assignment: the data that a companion receives, and when. */
import { randomUUID } from "node:crypto";
import type { Check } from "../check.ts";
import {
  expectField,
  expectNot,
  expectNow,
  expectRefused,
  expectSame,
  expectStatus,
  expectThat,
  objectOf,
} from "../expect.ts";
import { AMOUNT } from "../world.ts";
import { sharedIn } from "./shared-collection.ts";

const ASSIGNMENT_FIELDS = {
  intent_id: "integer",
  intent_display_number: "integer",
  order_display_number: "integer",
  station_name: "string",
  amount: "amount",
  currency: "string",
  status: "string",
  handoff_target: "string",
  expires_at: "date-time",
} as const;
const ASSIGNMENT_ROWS: Readonly<Record<keyof typeof ASSIGNMENT_FIELDS, string>> = {
  intent_id: "intent_id | integer",
  intent_display_number: "intent_display_number | integer",
  order_display_number: "order_display_number | integer",
  station_name: "station_name | string",
  amount:
    "amount | string, decimal | pattern `^-?\\d{0,10}(?:\\.\\d{0,2})?$` (up to 10 integer digits, up to 2 fraction digits)",
  currency: "currency | string",
  status: "status | string | intent status",
  handoff_target: "handoff_target | string | as in the device snapshot",
  expires_at: "expires_at | string, date-time | real deadline; a lapsed intent becomes expired",
};
const assignmentOf = (body: Record<string, unknown>): Record<string, unknown> =>
  objectOf({ body } as never, "assignment");

const assignmentFields: readonly Check[] = (Object.keys(ASSIGNMENT_FIELDS) as (keyof typeof ASSIGNMENT_FIELDS)[]).map(
  (field) => ({
    id: `assignment.${field}`,
    capability: "handoff_present",
    after: ["assignment.fetched"],
    quotes: [
      ASSIGNMENT_ROWS[field],
      "Backend-authored; every money field is order truth snapshotted at intent creation. All fields required.",
    ],
    run: async (world) => expectField(sharedIn(world).assignment, field, ASSIGNMENT_FIELDS[field]),
  }),
);

export const assignmentChecks: readonly Check[] = [
  {
    id: "assignment.nothing",
    capability: "handoff_present",
    after: ["presence.live_offered"],
    quotes: [
      "Response JSON: `assignment` (Assignment object, or null when there is nothing to collect; required key) and `server_time` (date-time).",
      "payments_device_assignment | GET | /api/payments/v1/devices/assignment/ | device credential",
    ],
    async run(world) {
      const body = objectOf(expectStatus(await world.fetchAssignment(), 200));
      expectSame("`assignment`", body["assignment"], null);
      expectField(body, "server_time", "date-time");
      expectNow("`server_time`", body["server_time"]);
    },
  },
  {
    id: "intent.created",
    capability: "handoff_present",
    after: ["assignment.nothing"],
    quotes: [
      "(none) | cashier picks the smart POS route | a live handoff device is attached to the station (live = actively heartbeating) | created | intent becomes available to the device as an assignment",
      "A device supplies no money field and cannot amend one; every money value is authored by the backend from order truth.",
      "recorded as presented; this is the only state change a device can cause on its own",
    ],
    async run(world) {
      await world.beat();
      Object.assign(sharedIn(world), {
        collection: await world.collect("smart_pos"),
        slip: `SLIP-${randomUUID()}`,
        key: randomUUID(),
      });
      await world.beat();
      const intent = await world.intent(sharedIn(world).collection.intentId);
      expectSame("`status` of the intent", intent["status"], "created");
      expectSame("`amount` of the intent", intent["amount"], AMOUNT);
    },
  },
  {
    id: "assignment.fetched",
    capability: "handoff_present",
    after: ["intent.created"],
    quotes: [
      "created | device GET assignment | assignment fetched fresh | presented | recorded as presented; this is the only state change a device can cause on its own",
      "Fetching a fresh assignment records the intent as presented.",
    ],
    async run(world) {
      const answer = expectStatus(await world.fetchAssignment(), 200);
      sharedIn(world).etag = answer.headers.get("etag") ?? "";
      sharedIn(world).assignment = assignmentOf(objectOf(answer));
      const intent = await world.intent(sharedIn(world).collection.intentId);
      expectSame("`status` of the intent", intent["status"], "presented");
      expectNot("`presented_at` of the intent", intent["presented_at"], null);
    },
  },
  ...assignmentFields,
  {
    id: "assignment.order_truth",
    capability: "handoff_present",
    after: ["assignment.fetched"],
    quotes: [
      "Backend-authored; every money field is order truth snapshotted at intent creation.",
      "`amount` has at most 10 integer digits and at most 2 fraction digits.",
    ],
    async run(world) {
      const { collection, assignment } = sharedIn(world);
      expectSame("`intent_id`", assignment["intent_id"], collection.intentId);
      expectSame("`intent_display_number`", assignment["intent_display_number"], collection.intentDisplayNumber);
      expectSame("`order_display_number`", assignment["order_display_number"], collection.orderDisplayNumber);
      expectSame("`amount`", assignment["amount"], AMOUNT);
      expectSame("`currency`", assignment["currency"], world.currency);
      const me = objectOf(await world.companion.send("GET", "me/"));
      expectSame("`handoff_target`", assignment["handoff_target"], me["handoff_target"]);
      expectSame("`station_name`", assignment["station_name"], me["station_name"]);
    },
  },
  {
    id: "assignment.presented",
    capability: "handoff_present",
    after: ["assignment.fetched"],
    quotes: ["status | string | intent status"],
    async run(world) {
      const { status } = await world.intent(sharedIn(world).collection.intentId);
      expectSame("`status` of the assignment", sharedIn(world).assignment["status"], status);
    },
  },
  {
    id: "attest.needs_evidence",
    capability: "settlement",
    after: ["assignment.fetched"],
    quotes: [
      "processing | cashier attests | cashier confirms from the evidence | succeeded | settlement goes through the payment seam; reference inherited from provider_reference",
    ],
    async run(world) {
      const { intentId, orderId } = sharedIn(world).collection;
      expectRefused(await world.decide(intentId, "attest"), 409);
      expectSame("`status` of the intent", (await world.intent(intentId))["status"], "presented");
      expectSame("`status` of the order", (await world.order(orderId))["status"], "open");
    },
  },
  {
    id: "assignment.deadline",
    capability: "handoff_present",
    after: ["assignment.fetched"],
    quotes: [
      "expires_at | string, date-time | real deadline; a lapsed intent becomes expired",
      "An intent is valid until its `expires_at`.",
    ],
    async run(world) {
      const intent = await world.intent(sharedIn(world).collection.intentId);
      const expiresAt = sharedIn(world).assignment["expires_at"];
      expectSame("`expires_at`", Date.parse(String(expiresAt)), Date.parse(String(intent["expires_at"])));
      expectThat("`expires_at`", Date.parse(String(expiresAt)) > Date.now(), "a time in the future", expiresAt);
    },
  },
];

/** These run after the cashier has cancelled the shared collection. */
export const cancelledAssignmentChecks: readonly Check[] = [
  {
    // No other check builds on it: a service that answers 304 to everything fails the check of that sentence, too.
    id: "assignment.cancelled",
    capability: "handoff_present",
    after: ["cancel.by_cashier"],
    quotes: [
      "Response 304 with no body when the assignment is unchanged.",
      "`assignment` (Assignment object, or null when there is nothing to collect; required key) and `server_time` (date-time).",
    ],
    async run(world) {
      const { assignment } = objectOf(expectStatus(await world.fetchAssignment(sharedIn(world).etag), 200));
      expectSame("`assignment` after its end", assignment, null);
    },
  },
];

/** These run while a collection lapses, because nothing changes then. */
export const unchangedAssignmentChecks: readonly Check[] = [
  {
    id: "assignment.not_modified",
    capability: "handoff_present",
    after: ["expiry.begins"],
    quotes: [
      "Request header: `If-None-Match` with the last ETag (optional).",
      "Response 304 with no body when the assignment is unchanged.",
      "A polling read with an unchanged state answers 304 with no body; this is not an error.",
    ],
    async run(world) {
      const again = expectStatus(await world.fetchAssignment(), 200);
      const etag = again.headers.get("etag") ?? "";
      expectThat("header `ETag`", etag !== "", "it is there", again.headers.get("etag"));
      const unchanged = expectStatus(await world.fetchAssignment(etag), 304);
      expectSame("body of 304", unchanged.text, "");
      expectSame("header `ETag` of 304", unchanged.headers.get("etag"), etag);
      const fetched = expectStatus(await world.fetchAssignment('"another"'), 200);
      const first = objectOf(again, "assignment");
      expectSame("the assignment of a second fetch", objectOf(fetched, "assignment"), first);
    },
  },
];
