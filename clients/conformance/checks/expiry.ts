/** A collection lapses while its companion is silent. This takes half a minute, and nothing else can be collected meanwhile. */
import { clientLimits } from "../../limits.ts";
import type { Check } from "../check.ts";
import { expectNot, expectRefused, expectSame, expectStatus, expectThat, objectOf } from "../expect.ts";
import { lapsingIn } from "./shared-collection.ts";

/** An intent ends within this time after its deadline. */
const LATE_MS = 5_000;

export const expiryChecks: readonly Check[] = [
  {
    id: "expiry.begins",
    capability: "outcome_report",
    after: ["cancel.by_cashier"],
    quotes: ["An intent is valid until its `expires_at`."],
    async run(world) {
      await world.beat();
      lapsingIn(world).collection = await world.collect("smart_pos", { lifetimeSeconds: 30 });
      expectStatus(await world.fetchAssignment(), 200);
    },
  },
];

export const lapsedChecks: readonly Check[] = [
  {
    id: "expiry.expires",
    capability: "outcome_report",
    after: ["expiry.begins"],
    quotes: [
      "non-terminal states | time | expires_at passes | expired | the cashier must create a new intent",
      "expires_at | string, date-time | real deadline; a lapsed intent becomes expired",
    ],
    async run(world) {
      const read = () => world.intent(lapsingIn(world).collection.intentId);
      const { expires_at: expiresAt, ended_at: endedAt } = await world.until(
        "the intent is expired",
        clientLimits.conformanceSilenceMs,
        read,
        (intent) => intent["status"] === "expired",
      );
      const lateMs = Date.parse(String(endedAt)) - Date.parse(String(expiresAt));
      expectThat(
        "`ended_at`",
        lateMs >= 0 && lateMs < LATE_MS,
        `\`expires_at\`, which is ${String(expiresAt)}`,
        endedAt,
      );
      const { assignment } = objectOf(expectStatus(await world.fetchAssignment(), 200));
      expectSame("`assignment` after its end", assignment, null);
    },
  },
  {
    id: "report.after_expired",
    capability: "outcome_report",
    after: ["expiry.expires"],
    quotes: [
      "A 409 with `status` equal to `expired` means the intent lapsed while the payment application was running; the sender must not retry, and the collection restarts from the cashier.",
      "409 | intent_not_actionable | intent already settled, cancelled or expired; the body carries a `status` field",
    ],
    async run(world) {
      const answer = await world.report(lapsingIn(world).collection.intentId, "reported_success");
      expectSame("`status` of the refusal", expectRefused(answer, 409, "intent_not_actionable")["status"], "expired");
      const attested = await world.decide(lapsingIn(world).collection.intentId, "attest");
      expectThat("attestation of an expired intent", attested.status >= 400, "a refusal", attested.status);
      expectSame(
        "`status` of the intent",
        (await world.intent(lapsingIn(world).collection.intentId))["status"],
        "expired",
      );
      expectSame("`status` of the order", (await world.order(lapsingIn(world).collection.orderId))["status"], "open");
    },
  },
  {
    id: "expiry.collected_again",
    capability: "settlement",
    after: ["expiry.expires"],
    quotes: [
      "non-terminal states | time | expires_at passes | expired | the cashier must create a new intent",
      "the collection restarts from the cashier",
    ],
    async run(world) {
      const { orderId, intentId } = lapsingIn(world).collection;
      const again = objectOf(expectStatus(await world.createIntent("cash", orderId, { isConfirmed: true }), 201));
      expectNot("`intent_id` of the new intent", again["intent_id"], intentId);
      await world.discard({ orderId, intentId: Number(again["intent_id"]) });
    },
  },
];
