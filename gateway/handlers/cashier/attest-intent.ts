/** The cashier confirms from the evidence: the one step that settles (contract, "Rules" 2–4). */
import type { z } from "zod";
import { isAttestedDirectly, type PaymentIntent } from "../../../machines/payment-intent.ts";
import type { attestBodySchema } from "../../contract/intent.ts";
import { idempotencyKey, sessionCommandId } from "../../http/command-id.ts";
import { ok, Refusal, type SessionContext, type SessionHandler } from "../../http/handler-context.ts";
import { cashierActor, ownStation } from "../../http/own-station.ts";
import { spokenOf } from "./intent-reply.ts";
import { decidedIntentWire } from "./intent-wire.ts";

/**
 * Answers once the payment seam has spoken. Refusals: `evidence_required`, `reference_required`, `order_changed`,
 * `order_already_paid`, `order_voided`, `money_already_used`, `reference_already_used`, `money_may_have_moved` with `reason` and `earlier_intent_id`, `settlement_in_progress`, `intent_not_actionable`, `intent_unknown`,
 * `lease_required`, `station_leased`, `idempotency_key_reused`.
 */
export const attestIntent: SessionHandler<z.infer<typeof attestBodySchema>> = async (context) => {
  const { deps, body } = context;
  const station = await ownStation(context);
  const { stationId } = station;
  const intentId = context.id("intent_id");
  const {
    reference,
    confirms_reference_already_used: confirms,
    confirms_money_may_have_moved: confirmsMoneyMayHaveMoved,
  } = body;
  const response = await deps.bus.command(stationId, {
    // The answer to an attestation is kept, also that its reference is used already: confirming it is another command.
    commandId: sessionCommandId(context, confirms === true ? "intent_attest_confirmed" : "intent_attest", intentId),
    actor: cashierActor(context),
    command: {
      type: "intent_attest",
      intentId,
      reference,
      confirmsReferenceAlreadyUsed: confirms,
      confirmsMoneyMayHaveMoved,
    },
  });
  const intent = spokenOf(response);
  if (isOtherBody(context, intent, reference)) throw new Refusal("idempotency_key_reused");
  return ok(decidedIntentWire(intent, station, deps.nowMs()));
};

/**
 * A repeated key answers with the first attestation. Its reference shows whether the body was the same only where the
 * typed reference is what was attested. On the other routes the device's or the provider's own reference is attested
 * whatever the cashier typed, and a settled payment must never be answered with an error.
 */
function isOtherBody(
  context: SessionContext<unknown, unknown>,
  intent: PaymentIntent,
  typed: string | undefined,
): boolean {
  const isKeyed = idempotencyKey(context) !== undefined;
  return isKeyed && isAttestedDirectly(intent.route) && typed !== undefined && intent.attestation?.reference !== typed;
}
