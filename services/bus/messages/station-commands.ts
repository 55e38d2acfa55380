/**
 * The command to a station's actor and its answer. The types come from the machines. The schema checks a command from
 * the bus before a machine gets it.
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
import { BOUNDS } from "../bounds.ts";
import type { FieldError } from "../field-errors.ts";
import { amountMinorSchema } from "./amount.ts";

/**
 * The commands that a gateway or the relay may send. An intent's creation has only the order's id: the host reads the
 * order from the settlement service, so that no amount can come from outside (I1). The relay may repeat a success of
 * the payment seam to a station whose log has lost it.
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
  /**
   * Set when the relay restores what the log may have lost. A host for which the command changes nothing then confirms
   * that its state is in the log.
   */
  readonly isRestoring?: true | undefined;
}

export interface StationResponse {
  readonly reply: StationReply;
  /** The intent of the reply, as it was at that time. */
  readonly intent: PaymentIntent | null;
  /**
   * The stream sequence of the station's newest commit at the time of the reply. A replica that has reached it shows
   * the effect.
   */
  readonly sequence: number;
}

/**
 * Why no actor has carried out the command. With `unavailable` the outcome is unknown; with any other failure nothing
 * was committed. A repetition does not help after `invalid_request`.
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
  // The id is 0 when a station has no provider any more.
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
  amountMinor: amountMinorSchema,
  currency,
  status: z.enum(["open", "paid", "voided"]),
  revision,
});

/**
 * A transaction of the payment seam with its attestation. In a provider's attestation the cashier is 0 without a name.
 */
export const saleSchema = z.object({
  intentId: id,
  transactionId: id,
  attestation: z.object({ cashierId: z.int().min(0), cashierName: text, reference: evidence, atMs: ms }).optional(),
});

const lostReasonSchema = z.object({
  orderId: id,
  intentId: id,
  reason: z.enum(UNCLEAR_REASONS),
  reasonNumber: z.int().min(0).optional(),
  isAssumed: z.literal(true).optional(),
});
/** The collections that may have moved money and that a station's log has lost. */
export const lostCollectionsSchema = z.object({
  unclear: z.array(lostReasonSchema).readonly(),
  reasons: z.array(lostReasonSchema).readonly(),
  unclearThrough: z.int().min(0),
  nextIntentNumber: id,
  lastReasonNumber: z.int().min(0).optional(),
});

const leaseTerms = { lifetimeMs, session: z.object({ sessionId: id, expiresAtMs: ms }).optional() };

const moneyConfirmation = {
  confirmsMoneyMayHaveMoved: z.boolean().optional(),
  confirmedReasonNumber: z.int().min(0).optional(),
};

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
    ...moneyConfirmation,
  }),
  z.object({
    type: z.literal("intent_attest"),
    intentId: id,
    reference: text.optional(),
    confirmsReferenceAlreadyUsed: z.boolean().optional(),
    confirmedReportCount: z.int().min(0).optional(),
    ...moneyConfirmation,
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
