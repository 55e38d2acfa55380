/** A station's collections in the cashier's API: begin, read, attest, cancel. */
import { z } from "zod";
import { isAttestedDirectly, type PaymentIntent } from "../../../machines/payment-intent.ts";
import type { MoneyConfirmation } from "../../../machines/station/command.ts";
import { findIntent } from "../../../machines/station/state.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import { findEndedIntent } from "../../../services/bus/messages/intents.ts";
import { idempotencyHeaderSchema, idempotencyKey, sessionCommandId } from "../../http/command-id.ts";
import {
  type AcceptedResponse,
  ApiError,
  created,
  ok,
  type SessionContext,
  type SessionHandler,
} from "../../http/handler-context.ts";
import { cashierActor, ownStation } from "../../http/own-station.ts";
import { cashierRoute } from "../../http/route.ts";
import { idSchema, reasonNumberSchema } from "../../http/shared-schemas.ts";
import { LIMITS } from "../../limits.ts";
import { createdIntentJson, decidedIntentJson, intentJson, intentSchema, paymentRouteSchema } from "./intent-json.ts";

const confirmedReasonNumberSchema = reasonNumberSchema.optional().meta({
  description:
    "The `reason_number` that the person saw when they confirmed with `confirms_money_may_have_moved`. Each reason has a number, and so has each further payment with the same reason. The confirmation does not cover a reason with a higher number, which came after the question: the request is refused again, and the refusal names that reason if the station still has it. Of one collection, a further success beyond four different ones that are not confirmed gets no number. Without this field, the confirmation covers every reason.",
});

/** The order and the route. There is no amount, because the order has it (contract, "Rules" 1). */
const createIntentBodySchema = z
  .strictObject({
    order_id: idSchema,
    route: paymentRouteSchema,
    device_id: idSchema
      .optional()
      .meta({ description: "The companion that gets the collection; without it, the first live companion." }),
    lifetime_seconds: z
      .int()
      .min(BOUNDS.intentLifetimeMs.min / 1_000)
      .max(BOUNDS.intentLifetimeMs.max / 1_000)
      .optional()
      .meta({ description: "How long the collection may be open; 180 s when left out." }),
    confirms_money_may_have_moved: z.boolean().optional().meta({
      description:
        "An earlier collection of this order may have moved money (error `money_may_have_moved`): with true, the collection begins anyway, and the timeline names the person who decided this.",
    }),
    confirmed_reason_number: confirmedReasonNumberSchema,
  })
  .meta({ id: "CreateIntent", examples: [{ order_id: 42, route: "smart_pos" }] });

/** An attested terminal needs the reference. A smart POS collection inherits the device's. */
const attestBodySchema = z
  .strictObject({
    reference: z.string().trim().min(1).max(LIMITS.referenceCharacters).optional().meta({
      description:
        "What the cashier reads off the slip. `attested_terminal` needs it, and `cash` may have it. On `smart_pos` it is used only if no report of the device has a reference. On `dynamic_qr` it is ignored: the provider's reference is attested. Under a repeated `Idempotency-Key`, a different reference counts as a different request only on `attested_terminal` and `cash`; a reference that is left out is not compared.",
    }),
    confirms_reference_already_used: z.boolean().optional().meta({
      description:
        "The reference has settled another order (error `reference_already_used`): with true, the order is settled anyway, and the timeline names the person who decided this. A confirmed attestation is a separate command, so it may have the `Idempotency-Key` of the refused one.",
    }),
    confirmed_report_count: z.int().min(0).optional().meta({
      description:
        "The `report_count` of the intent when the person confirmed with `confirms_reference_already_used`. A device may send another report before the confirmation arrives: then the confirmation does not count, and the reference in force is compared like a first one. Without this field, the confirmation counts for every reference.",
    }),
    confirms_money_may_have_moved: z.boolean().optional().meta({
      description:
        "An earlier collection of this order may have moved money (`confirmation_needed` of the intent, error `money_may_have_moved`). The station learned this after this collection was created or last confirmed. With true, the order is settled anyway, and the timeline names the person who decided this. The refusal is not stored under its `Idempotency-Key`, so the confirmed attestation may have the same key.",
    }),
    confirmed_reason_number: confirmedReasonNumberSchema,
  })
  .meta({ id: "Attest", examples: [{ reference: "TERM-0042" }] });

/** The active intent first, then the recently ended ones, newest first. */
export const intentsSchema = z.object({ intents: z.array(intentSchema) });

type CreateIntentBody = z.infer<typeof createIntentBodySchema>;

/**
 * Begins a collection. Errors: `lease_required`, `station_leased`, `collection_active`, `route_not_offered` with `reason`,
 * `money_may_have_moved` with `reason`, `earlier_intent_id` and `reason_number`, `not_found` (the order), `order_changed`,
 * `order_already_paid`, `order_voided`, `amount_not_collectable`, `idempotency_key_reused`.
 */
const createIntent: SessionHandler<CreateIntentBody> = async (context) => {
  const { body, deps } = context;
  const { stationId } = await ownStation(context);
  const response = await deps.bus
    .command(stationId, {
      commandId: sessionCommandId(context, "intent_create", stationId),
      actor: cashierActor(context),
      command: {
        type: "intent_create",
        route: body.route,
        orderId: body.order_id,
        deviceId: body.device_id,
        lifetimeMs: body.lifetime_seconds === undefined ? undefined : body.lifetime_seconds * 1_000,
        ...moneyConfirmation(body),
      },
    })
    .catch(withoutSettlement);
  const intent = requireIntent(response);
  if (!wasAskedFor(intent, body)) throw new ApiError("idempotency_key_reused");
  return created(createdIntentJson(intent));
};

function moneyConfirmation(body: CreateIntentBody | z.infer<typeof attestBodySchema>): MoneyConfirmation {
  return {
    confirmsMoneyMayHaveMoved: body.confirms_money_may_have_moved,
    confirmedReasonNumber: body.confirmed_reason_number,
  };
}

/** The payment seam answers `order_unknown` when a guest may have paid. Before a collection the answer is `not_found`. */
function withoutSettlement(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== "order_unknown") throw error;
  throw new ApiError("not_found", { detail: "There is no such order at this station." });
}

/**
 * The answer to a repeated key is the first intent. The intent has all values of the body, so this function detects another
 * body under the same key, and the service needs no copy of bodies.
 */
function wasAskedFor(intent: PaymentIntent, body: CreateIntentBody): boolean {
  if (intent.orderId !== body.order_id || intent.route !== body.route) return false;
  if (body.device_id !== undefined && body.route === "smart_pos" && intent.deviceId !== body.device_id) return false;
  const lifetimeMs = intent.expiresAtMs - intent.createdAtMs;
  return body.lifetime_seconds === undefined || lifetimeMs === body.lifetime_seconds * 1_000;
}

/** The active intent first, then the recently ended ones: as many as the station's bounded state holds. */
const listIntents: SessionHandler = async (context) => {
  const station = await ownStation(context);
  const { deps } = context;
  const facts = { station, switches: deps.switches(), nowMs: deps.nowMs() };
  const intents = station.intent === null ? station.ended : [station.intent, ...station.ended];
  return ok({ intents: intents.map((intent) => intentJson(intent, facts)) });
};

/**
 * The settlement service has the intents that have left the station's state. Error: `intent_unknown`, but only when the replica
 * is the newest, because another gateway may have acknowledged the intent a moment ago.
 */
const getIntent: SessionHandler = async (context) => {
  const station = await ownStation(context);
  const { deps } = context;
  const facts = { station, switches: deps.switches(), nowMs: deps.nowMs() };
  const intentId = context.id("intent_id");
  const recent = findIntent(station, intentId);
  if (recent !== undefined) return ok(intentJson(recent, facts));
  const { intent } = await deps.bus.call(findEndedIntent, { stationId: station.stationId, intentId });
  if (intent !== null) return ok(intentJson(intent as unknown as PaymentIntent, facts));
  const newest = await deps.newestStation(station.stationId);
  const found = newest && findIntent(newest, intentId);
  if (newest === undefined || found === undefined) throw new ApiError("intent_unknown");
  return ok(intentJson(found, { ...facts, station: newest }));
};

/**
 * The only request that settles (contract, "Rules" 2–4). It answers after the payment seam has. Errors:
 * `evidence_required`, `reference_required`, `order_changed`, `order_already_paid`, `order_voided`, `money_already_used`,
 * `reference_already_used`, `money_may_have_moved` with `reason`, `earlier_intent_id` and `reason_number`, `settlement_in_progress`,
 * `intent_not_actionable`, `intent_unknown`, `lease_required`, `station_leased`, `idempotency_key_reused`.
 */
const attestIntent: SessionHandler<z.infer<typeof attestBodySchema>> = async (context) => {
  const { deps, body } = context;
  const station = await ownStation(context);
  const { stationId } = station;
  const intentId = context.id("intent_id");
  const { reference, confirms_reference_already_used: confirms, confirmed_report_count: confirmedReportCount } = body;
  const response = await deps.bus.command(stationId, {
    commandId: sessionCommandId(context, attestationKind(body), intentId),
    actor: cashierActor(context),
    command: {
      type: "intent_attest",
      intentId,
      reference,
      confirmsReferenceAlreadyUsed: confirms,
      confirmedReportCount,
      ...moneyConfirmation(body),
    },
  });
  const intent = requireIntent(response);
  if (isOtherBody(context, intent, reference)) throw new ApiError("idempotency_key_reused");
  return ok(decidedIntentJson(intent, station, deps.nowMs()));
};

/**
 * A confirmation is another command, because the station repeats its answer to the same one, even `reference_already_used`. So is
 * each confirmation after another report: it is about another reference.
 */
function attestationKind(body: z.infer<typeof attestBodySchema>): string {
  if (body.confirms_reference_already_used !== true) return "intent_attest";
  return `intent_attest_confirmed${body.confirmed_report_count ?? ""}`;
}

/**
 * The answer to a repeated key is the first attestation. Its reference reveals another body only if the cashier entered it. On
 * the other routes the reference is the device's or the provider's, and the answer to a settled payment must never be an error.
 */
function isOtherBody(
  context: SessionContext<unknown, unknown>,
  intent: PaymentIntent,
  typed: string | undefined,
): boolean {
  const isKeyed = idempotencyKey(context) !== undefined;
  return isKeyed && isAttestedDirectly(intent.route) && typed !== undefined && intent.attestation?.reference !== typed;
}

/**
 * Ends a collection without settling. Errors: `settlement_in_progress`, `intent_not_actionable`, `intent_unknown`,
 * `lease_required`, `station_leased`.
 */
const cancelIntent: SessionHandler = async (context) => {
  const station = await ownStation(context);
  const { stationId } = station;
  const intentId = context.id("intent_id");
  const response = await context.deps.bus.command(stationId, {
    commandId: sessionCommandId(context, "intent_cancel", intentId),
    actor: cashierActor(context),
    command: { type: "intent_cancel", intentId },
  });
  return ok(decidedIntentJson(requireIntent(response), station, context.deps.nowMs()));
};

/** The intent in a station's answer to an accepted command. An answer without an intent is a fault of this program. */
function requireIntent(response: AcceptedResponse): PaymentIntent {
  if (response.intent === null) throw new Error("A station answered a command about an intent without the intent.");
  return response.intent;
}

const intents = "/api/cashier/v1/stations/{station_id}/intents/";
const intent = `${intents}{intent_id}/` as const;
const headers = idempotencyHeaderSchema;
const intentReply = { 200: { description: "The intent after the change.", schema: intentSchema } };

export const intentRoutes = [
  cashierRoute({
    method: "POST",
    path: intents,
    operation: "createIntent",
    summary: "Begin a collection",
    description:
      "Picks a route for an order. One station has one active collection at a time. An order that is not at this station is `not_found`. Under a repeated `Idempotency-Key`, `order_id`, `route`, `lifetime_seconds` and on `smart_pos` also `device_id` must equal those of the first request. A field that is left out is not compared, and what confirms that money may have moved is never compared.",
    headers,
    body: createIntentBodySchema,
    replies: { 201: { description: "The intent.", schema: intentSchema } },
    errors: [
      "not_found",
      "lease_required",
      "station_leased",
      "collection_active",
      "route_not_offered",
      "money_may_have_moved",
      "order_changed",
      "order_already_paid",
      "order_voided",
      "amount_not_collectable",
      "idempotency_key_reused",
    ],
    handler: createIntent,
  }),
  cashierRoute({
    method: "GET",
    path: intents,
    operation: "listIntents",
    summary: "List the station's recent collections",
    description:
      "Only the recent collections that the station still has in its state; read an older one with `GET` of the intent.",
    replies: {
      200: { description: "The active one first, then the ended ones, newest first.", schema: intentsSchema },
    },
    errors: ["not_found"],
    handler: listIntents,
  }),
  cashierRoute({
    method: "GET",
    path: intent,
    operation: "getIntent",
    summary: "Read a collection with its reports",
    description:
      "Read it about once a second while a device is at work: `processing` means that the cashier can attest. An operator's attribution pays an order under an intent id that no station ever collected. Such an id is `intent_unknown` here; `GET /api/backoffice/v1/intents/{intent_id}/timeline/` shows it.",
    replies: { 200: { description: "The intent.", schema: intentSchema } },
    errors: ["not_found", "intent_unknown"],
    handler: getIntent,
  }),
  cashierRoute({
    method: "POST",
    path: `${intent}attest/`,
    operation: "attestIntent",
    summary: "Attest the payment",
    description:
      "Settles through the payment seam, once. The cashier can attest whatever the device reported, even after a decline. One slip settles one order: on `attested_terminal` and `smart_pos`, a reference that has already settled an order of the same filial is refused. The error `reference_already_used` names that order; the cashier can confirm the reference with `confirms_reference_already_used`. References are compared as a person reads them (letter case, spaces and invisible characters do not count). A reference of up to six characters, which terminals use again each day, is compared only with references of the last 20 hours. If an earlier collection of the order has got a reason why its money may have moved since this one was created, the attestation is refused with `money_may_have_moved`, `reason`, `earlier_intent_id` and `reason_number`, until the cashier confirms it with `confirms_money_may_have_moved`. `confirmation_needed` of the intent shows this reason beforehand.",
    headers,
    body: attestBodySchema,
    bodyOptional: true,
    replies: intentReply,
    errors: [
      "not_found",
      "intent_unknown",
      "intent_not_actionable",
      "evidence_required",
      "reference_required",
      "settlement_in_progress",
      "order_changed",
      "order_already_paid",
      "order_voided",
      "order_unknown",
      "money_already_used",
      "reference_already_used",
      "money_may_have_moved",
      "lease_required",
      "station_leased",
      "idempotency_key_reused",
    ],
    handler: attestIntent,
  }),
  cashierRoute({
    method: "POST",
    path: `${intent}cancel/`,
    operation: "cancelIntent",
    summary: "Cancel the collection",
    description:
      "Cannot be undone. The order stays open and can be collected again, so make sure first that the guest has not paid: a later report is refused. `money_may_have_moved` has the reason at the moment of the cancellation, and a repetition has the same one. Read the collection for what was learned since then, also from a late report.",
    headers,
    replies: intentReply,
    errors: [
      "not_found",
      "intent_unknown",
      "intent_not_actionable",
      "settlement_in_progress",
      "lease_required",
      "station_leased",
    ],
    handler: cancelIntent,
  }),
];
