/** The schema of a command to a station, for the actor host: what arrives on the bus is checked before it reaches a machine. */
import { z } from "zod";
import { PROVIDER_END_REASONS, REPORTED_OUTCOMES, ROUTES } from "../../../machines/payment-intent.ts";
import { BLOCKED_REASONS, DEVICE_STATUSES, STATION_STATUSES } from "../../../machines/standing.ts";
import { CAPABILITIES, DEVICE_KINDS } from "../../../machines/station/state.ts";
import { AMOUNT_MINOR_PATTERN, BOUNDS } from "../bounds.ts";
import type { StationRequest } from "./station.ts";

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
  // 0 when a station is told that it has no provider any more.
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
/** An order as the settlement service tells it. */
export const orderSnapshotSchema = z.object({
  orderId: id,
  orderDisplayNumber: id,
  amountMinor: z.string().regex(AMOUNT_MINOR_PATTERN),
  currency,
  status: z.enum(["open", "paid", "voided"]),
  revision,
});

/** A transaction of the payment seam, with what was attested. */
export const saleSchema = z.object({
  intentId: id,
  transactionId: id,
  attestation: z.object({ cashierId: id, cashierName: text, reference: evidence, atMs: ms }).optional(),
});

const leaseTerms = { lifetimeMs, session: z.object({ sessionId: id, expiresAtMs: ms }).optional() };

const command = z.discriminatedUnion("type", [
  z.object({ type: z.literal("station_put"), stationId: id, station: stationDescriptionSchema }),
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

/** Nobody but the payment seam says that an intent is paid, and only the relay speaks for it on the bus. */
const isOfSeam = (request: StationRequest): boolean =>
  request.command.type !== "settlement_succeeded" || request.actor.kind === "settlement";

export const stationRequestSchema: z.ZodType<StationRequest> = z
  .object({
    commandId: z.string().min(1).max(BOUNDS.commandIdCharacters),
    actor,
    command,
  })
  .refine(isOfSeam, { path: ["actor", "kind"], message: "Only the payment seam settles." });
