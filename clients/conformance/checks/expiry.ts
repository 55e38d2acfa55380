/** A collection that lapses while its companion is silent: half a minute, in which nothing else can be collected. */
import { clientLimits } from "../../limits.ts";
import { type Check, perRun } from "../check.ts";
import { hasStatus, holds, isRefused, isSame } from "../expect.ts";
import type { Collection } from "../world.ts";

const lapsingIn = perRun(() => ({ collection: {} as Collection }));

export const expiryChecks: readonly Check[] = [
  {
    id: "expiry.begins",
    capability: "outcome_report",
    after: ["cancel.by_cashier"],
    quotes: ["An intent is valid until its `expires_at`."],
    async run(world) {
      await world.beat();
      lapsingIn(world).collection = await world.collect("smart_pos", { lifetimeSeconds: 30 });
      hasStatus(await world.fetchAssignment(), 200);
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
      isSame("`ended_at` before `expires_at`", Date.parse(String(endedAt)) < Date.parse(String(expiresAt)), false);
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
      isSame("`status` of the refusal", isRefused(answer, 409, "intent_not_actionable")["status"], "expired");
      const attested = await world.decide(lapsingIn(world).collection.intentId, "attest");
      holds("attestation of an expired intent", attested.status >= 400, "a refusal", attested.status);
      isSame("`status` of the intent", (await world.intent(lapsingIn(world).collection.intentId))["status"], "expired");
      isSame("`status` of the order", (await world.order(lapsingIn(world).collection.orderId))["status"], "open");
    },
  },
];
