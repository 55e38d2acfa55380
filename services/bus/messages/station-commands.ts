/**
 * The command to a station's actor and its answer. The machines give the types; the schema checks what arrives on the bus
 * before it reaches a machine.
 */
import { z } from "zod";
import type { Actor } from "../../../machines/actor.ts";
import {
  type PaymentIntent,
  PROVIDER_END_REASONS,
  REPORTED_OUTCOMES,
  ROUTES,
  UNCLEAR_REASONS,
} from "../../../machines/payment-intent.ts";
import { BLOCKED_REASONS, DEVICE_STATUSES, STATION_STATUSES } from "../../../machines/standing.ts";
import type { StationCommand } from "../../../machines/station/command.ts";
import type { StationReply } from "../../../machines/station/reply.ts";
import { CAPABILITIES, DEVICE_KINDS } from "../../../machines/station/state.ts";
import { AMOUNT_MINOR_PATTERN, BOUNDS } from "../bounds.ts";
import type { FieldError } from "../field-errors.ts";

/**
 * What a gateway or the relay asks for. An intent's creation names the order only: the host asks the settlement service
 * for the order's truth, so that no amount can come from outside (I1). Of the payment seam's answers the relay may repeat
 * a success, to a station whose log has lost it.
 */
export type RequestedCommand =
  | Exclude<
      StationCommand,
      { type: "intent_create" | "qr_ready" | "end_reported" | "settlement_refused" | "tick" | "rule_out" }
    >
  | (Omit<Extract<StationCommand, { type: "intent_create" }>, "intentId" | "order"> & { readonly orderId: number });

export interface StationRequest {
  /**
   * The same id gets the same answer. A device report's id is built from device, intent and client_idempotency_key; a
   * cashier's from user and Idempotency-Key; without a key it is random. At most 200 characters.
   */
  readonly commandId: string;
  readonly actor: Actor;
  readonly command: RequestedCommand;
  /** The relay restores what the log may have lost: a host that has nothing to do confirms that its state is in the log. */
  readonly isRestoring?: true | undefined;
}

export interface StationResponse {
  readonly reply: StationReply;
  /** The intent that the reply speaks of, as it was then. */
  readonly intent: PaymentIntent | null;
  /** The stream sequence of the station's newest commit when the reply was given; a replica at or past it shows the effect. */
  readonly sequence: number;
}

/**
 * Why no actor took the command. Nothing was committed for `busy` and `invalid_request`, which repeating does not change;
 * for `unavailable` it is unknown.
 */
export type StationFailure =
  | { readonly failure: "busy" | "storage_low" | "unavailable"; readonly retryAfterMs: number }
  | { readonly failure: "invalid_request"; readonly errors: readonly FieldError[] };

const id = z.int().positive();
const ms = z.number().min(0);
const lifetimeMs = z.int().positive().optional();
const revision = z.int().min(0);
const text = z.string().max(BOUNDS.stationTextCharacters);
const evidence = z.string().max(BOUNDS.reportTextCharacters);
const currency = z.string().length(BOUNDS.currencyCharacters);

const actor = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("device"), id }),
  z.object({ kind: z.literal("cashier"), id, name: text }),
  z.object({ kind: z.literal("owner"), id, name: text.optional() }),
  z.object({ kind: z.literal("registry"), id: z.int() }),
  z.object({ kind: z.literal("settlement"), id: z.int() }),
  // 0 when a station has no provider any more.
  z.object({ kind: z.literal("provider"), id: z.int().min(0) }),
  z.object({ kind: z.literal("system"), id: z.int() }),
]);

/** A station as the registry describes it. */
export const stationDescriptionSchema = z.object({
  organizationId: id,
  filialId: id,
  name: text,
  currency,
  status: z.enum(STATION_STATUSES),
  revision,
});
/** A device as the registry describes it. */
export const deviceDescriptionSchema = z.object({
  deviceId: id,
  name: text,
  kind: z.enum(DEVICE_KINDS),
  capabilities: z.array(z.enum(CAPABILITIES)).max(CAPABILITIES.length),
  status: z.enum(DEVICE_STATUSES),
  handoffTarget: text,
  revision,
});
/** An order as the settlement service reports it. */
export const orderSnapshotSchema = z.object({
  orderId: id,
  orderDisplayNumber: id,
  amountMinor: z.string().regex(AMOUNT_MINOR_PATTERN),
  currency,
  status: z.enum(["open", "paid", "voided"]),
  revision,
});

/** A transaction of the payment seam, with what was attested: by a provider, cashier 0 without a name. */
export const saleSchema = z.object({
  intentId: id,
  transactionId: id,
  attestation: z.object({ cashierId: z.int().min(0), cashierName: text, reference: evidence, atMs: ms }).optional(),
});

const lostReasonSchema = z.object({
  orderId: id,
  intentId: id,
  reason: z.enum(UNCLEAR_REASONS),
  isAssumed: z.literal(true).optional(),
});
/** What a station's log has lost of collections that may have moved money. */
export const lostCollectionsSchema = z.object({
  unclear: z.array(lostReasonSchema).readonly(),
  reasons: z.array(lostReasonSchema).readonly(),
  unclearThrough: z.int().min(0),
  nextIntentNumber: id,
});

const leaseTerms = { lifetimeMs, session: z.object({ sessionId: id, expiresAtMs: ms }).optional() };

const command = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("station_put"),
    stationId: id,
    station: stationDescriptionSchema,
    lost: lostCollectionsSchema.optional(),
  }),
  z.object({ type: z.literal("device_put"), device: deviceDescriptionSchema }),
  z.object({ type: z.literal("order_put"), order: orderSnapshotSchema }),
  z.object({ type: z.literal("device_seen"), deviceId: id, seenAtMs: ms }),
  z.object({ type: z.literal("device_silent"), deviceId: id, lastSeenAtMs: ms }),
  z.object({ type: z.literal("sessions_ended"), sessionIds: z.array(id).min(1).max(BOUNDS.endedSessions) }),
  z.object({
    type: z.literal("lease_acquire"),
    takeOverFrom: id.optional(),
    requestDigest: text.optional(),
    ...leaseTerms,
  }),
  z.object({ type: z.literal("lease_renew"), ...leaseTerms }),
  z.object({ type: z.literal("lease_release") }),
  z.object({ type: z.literal("lease_break") }),
  z.object({
    type: z.literal("intent_create"),
    route: z.enum(ROUTES),
    orderId: id,
    deviceId: id.optional(),
    lifetimeMs,
    confirmsMoneyMayHaveMoved: z.boolean().optional(),
  }),
  z.object({
    type: z.literal("intent_attest"),
    intentId: id,
    reference: text.optional(),
    confirmsReferenceAlreadyUsed: z.boolean().optional(),
    confirmsMoneyMayHaveMoved: z.boolean().optional(),
  }),
  z.object({ type: z.literal("intent_cancel"), intentId: id }),
  z.object({ type: z.literal("intent_present"), intentId: id }),
  z.object({
    type: z.literal("intent_report"),
    intentId: id,
    outcome: z.enum(REPORTED_OUTCOMES),
    providerReference: evidence,
    providerCode: evidence,
    blockedReason: z.enum(BLOCKED_REASONS).optional(),
  }),
  z.object({ type: z.literal("provider_put"), provider: z.object({ configId: id.nullable(), revision }) }),
  z.object({ type: z.literal("provider_confirm"), intentId: id, providerReference: text }),
  z.object({ type: z.literal("provider_failed"), intentId: id, reason: z.enum(PROVIDER_END_REASONS) }),
  z.object({ type: z.literal("provider_cleared"), intentId: id }),
  z.object({ type: z.literal("provider_money_differs"), intentId: id, issue: text.min(1), issueId: id }),
  z.object({ type: z.literal("order_inquire"), orderId: id }),
  z.object({ type: z.literal("settlement_succeeded"), ...saleSchema.shape }),
]);

/** Only the payment seam decides that an intent is paid, and only the relay publishes that on the bus. */
const isOfSeam = (request: StationRequest): boolean =>
  request.command.type !== "settlement_succeeded" || request.actor.kind === "settlement";

export const stationRequestSchema: z.ZodType<StationRequest> = z
  .object({
    commandId: z.string().min(1).max(BOUNDS.commandIdCharacters),
    actor,
    command,
    isRestoring: z.literal(true).optional(),
  })
  .refine(isOfSeam, { path: ["actor", "kind"], message: "Only the payment seam settles." });
