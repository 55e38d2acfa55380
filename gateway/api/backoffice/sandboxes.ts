/**
 * Sandboxes: stations for tests, which the owner seeds, resets and deletes. They behave exactly like other stations
 * (contract, "Rules" 9): a reset uses only commands that a cashier and an owner can send to any station.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import type { Caller } from "../../../services/bus/messages/caller.ts";
import type { Device } from "../../../services/bus/messages/devices.ts";
import { listOrders, voidOrder } from "../../../services/bus/messages/orders.ts";
import { changeProviderConfig, ensureTestConfig } from "../../../services/bus/messages/provider-configs.ts";
import * as messages from "../../../services/bus/messages/sandboxes.ts";
import type { RequestedCommand } from "../../../services/bus/messages/station-commands.ts";
import { RefusedError } from "../../../services/bus/refusals.ts";
import { creationHeaderSchema, creationOf } from "../../http/command-id.ts";
import {
  ApiError,
  created,
  noContent,
  ok,
  type SessionContext,
  type SessionHandler,
} from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import {
  activeCurrencySchema,
  currencySchema,
  idSchema,
  nameSchema,
  optionalTimestamp,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { LIMITS } from "../../limits.ts";
import { deviceStatusSchema } from "./devices.ts";
import { stationStatusSchema } from "./stations.ts";

const deviceShape = { device_id: idSchema, name: z.string(), status: deviceStatusSchema };
const cashierShape = { user_id: idSchema, email: z.string(), name: z.string() };
const sandboxShape = {
  sandbox_id: idSchema,
  station_id: idSchema,
  filial_id: idSchema,
  name: z.string().meta({ description: "The name of its station." }),
  currency: currencySchema,
  station_status: stationStatusSchema,
  config_id: idSchema.meta({ description: "The filial's provider config of the mode `test`." }),
  created_at: timestampSchema,
  reset_at: timestampSchema.nullable().meta({ description: "When it was last reset." }),
};
const codeSchema = z.string().meta({ description: "The enrollment code, shown only once.", examples: ["7K3QX-9M2TB"] });

const EXAMPLE = {
  sandbox_id: 7,
  station_id: 12,
  filial_id: 1,
  name: "Test counter",
  currency: "EUR",
  station_status: "active" as const,
  config_id: 3,
  created_at: "2026-11-20T12:00:00.000Z",
  reset_at: null,
};
const EXAMPLE_DISPLAY = { device_id: 31, name: "Customer display", status: "pending" as const };
const EXAMPLE_COMPANION = { device_id: 32, name: "Smart POS companion", status: "pending" as const };
const EXAMPLE_CASHIER = { user_id: 9, email: "cashier-12-3f9a01bc@sandbox.example", name: "Sandbox cashier" };

const sandboxSchema = z
  .object({
    ...sandboxShape,
    display: z.object(deviceShape),
    companion: z.object(deviceShape),
    cashier: z.object(cashierShape),
  })
  .meta({
    id: "Sandbox",
    examples: [{ ...EXAMPLE, display: EXAMPLE_DISPLAY, companion: EXAMPLE_COMPANION, cashier: EXAMPLE_CASHIER }],
  });
/** With the codes and the password, which only the answers to a seed and a reset contain. */
const freshSandboxSchema = z
  .object({
    ...sandboxShape,
    display: z.object({ ...deviceShape, enrollment_code: codeSchema }),
    companion: z.object({ ...deviceShape, enrollment_code: codeSchema }),
    codes_expire_at: timestampSchema,
    cashier: z.object({ ...cashierShape, password: z.string().meta({ description: "Only this answer shows it." }) }),
  })
  .meta({
    id: "FreshSandbox",
    examples: [
      {
        ...EXAMPLE,
        display: { ...EXAMPLE_DISPLAY, enrollment_code: "7K3QX-9M2TB" },
        companion: { ...EXAMPLE_COMPANION, enrollment_code: "0RWD4-K8YZN" },
        codes_expire_at: "2026-11-21T12:00:00.000Z",
        cashier: { ...EXAMPLE_CASHIER, password: "pT0aXl4l2c1cVQkzUe8R" },
      },
    ],
  });
const sandboxesSchema = z.object({ sandboxes: z.array(sandboxSchema), has_more: hasMoreAfter });
const querySchema = z.strictObject(pageAfterQuery);
const seedBodySchema = z
  .strictObject({ filial_id: idSchema, name: nameSchema, currency: activeCurrencySchema })
  .meta({ id: "SeedSandbox", examples: [{ filial_id: 1, name: "Test counter", currency: "EUR" }] });

const resetBodySchema = z
  .strictObject({
    keeps_settings: z.boolean().optional().meta({
      description:
        "The next reset restores the `capabilities` and the `handoff_target` that the devices have after this reset. A conformance run uses this, because it changes them.",
    }),
  })
  .meta({ id: "ResetSandbox", examples: [{ keeps_settings: true }] });

const deviceJson = ({ deviceId, name, status }: Device) => ({ device_id: deviceId, name, status });

function sandboxJson(sandbox: messages.Sandbox): z.infer<typeof sandboxSchema> {
  const { station, cashier } = sandbox;
  return {
    sandbox_id: sandbox.sandboxId,
    station_id: station.stationId,
    filial_id: station.filialId,
    name: station.name,
    currency: station.currency,
    station_status: station.status,
    config_id: sandbox.configId,
    created_at: toTimestamp(sandbox.createdAtMs),
    reset_at: optionalTimestamp(sandbox.resetAtMs),
    display: deviceJson(sandbox.display),
    companion: deviceJson(sandbox.companion),
    cashier: { user_id: cashier.userId, email: cashier.email, name: cashier.name },
  };
}

interface Fresh {
  readonly sandbox: messages.Sandbox;
  readonly displayCode: string;
  readonly companionCode: string;
  readonly codesExpireAtMs: number;
  readonly cashierPassword: string;
}

function freshSandboxJson(fresh: Fresh): z.infer<typeof freshSandboxSchema> {
  const { display, companion, cashier, ...rest } = sandboxJson(fresh.sandbox);
  return {
    ...rest,
    display: { ...display, enrollment_code: fresh.displayCode },
    companion: { ...companion, enrollment_code: fresh.companionCode },
    codes_expire_at: toTimestamp(fresh.codesExpireAtMs),
    cashier: { ...cashier, password: fresh.cashierPassword },
  };
}

const listSandboxes: SessionHandler<undefined, z.infer<typeof querySchema>> = async ({ caller, deps, query }) => {
  const { since_id: sinceId, limit } = query;
  const { sandboxes, hasMore } = await deps.bus.call(messages.listSandboxes, { caller, sinceId, limit });
  return ok({ sandboxes: sandboxes.map(sandboxJson), has_more: hasMore });
};

const getSandbox: SessionHandler = async ({ caller, deps, id }) => {
  const { sandbox } = await deps.bus.call(messages.getSandbox, { caller, sandboxId: id("sandbox_id") });
  return ok(sandboxJson(sandbox));
};

const seedSandbox: SessionHandler<z.infer<typeof seedBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { filial_id: filialId, name, currency } = body;
  const { configId, isNew: ownsConfig } = await deps.bus.call(ensureTestConfig, { caller, filialId });
  const creation = creationOf(context, "sandbox");
  const request = { caller, filialId, configId, ownsConfig, name, currency, creation };
  const fresh = await deps.bus.call(messages.seedSandboxStation, request).catch(async (error: unknown) => {
    // No deletion would disable the config. If this fails too, the caller gets the error of the seed.
    const reason = "No sandbox was seeded.";
    if (ownsConfig) await disableUnused(context, { configId, reason }).catch(() => undefined);
    throw error;
  });
  // The second call announces the config to the new station. Where it fails, the station waits for the next announcement: an
  // error would hide the codes and the password, which are shown only once.
  await deps.bus.call(ensureTestConfig, { caller, filialId }).catch(() => undefined);
  return created(freshSandboxJson(fresh));
};

/** Ends all access first, then clears the station. After a reset that stopped half-way, the owner repeats all of it. */
const resetSandbox: SessionHandler<z.infer<typeof resetBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, sandboxId: context.id("sandbox_id"), keepsSettings: body.keeps_settings };
  const fresh = await deps.bus.call(messages.resetSandbox, request);
  await clearStation(context, fresh.sandbox);
  return ok(freshSandboxJson(fresh));
};

/**
 * A repetition has no sandbox to clear. It waits for the same changes, and disables the config where the first request has
 * ended before that.
 */
const deleteSandbox: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const sandboxId = context.id("sandbox_id");
  const found = await deps.bus.call(messages.getSandbox, { caller, sandboxId }).catch((error: unknown) => {
    if (error instanceof RefusedError && error.refusal.code === "not_found") return undefined;
    throw error;
  });
  if (found !== undefined) await clearStation(context, found.sandbox);
  const { unusedConfigId, deletedAtMs } = await deps.bus.call(messages.deleteSandbox, { caller, sandboxId });
  if (unusedConfigId !== null) {
    const reason = "The last sandbox that used it was deleted.";
    await disableUnused(context, { configId: unusedConfigId, unlessMovedSinceMs: deletedAtMs, reason });
  }
  return noContent();
};

/** Leaves the config active when another request has seeded a sandbox meanwhile. */
async function disableUnused(
  { caller, deps }: Pick<SessionContext, "caller" | "deps">,
  change: { readonly configId: number; readonly unlessMovedSinceMs?: number | undefined; readonly reason: string },
): Promise<void> {
  const disabled = { status: "disabled", unlessSandboxUsesIt: true } as const;
  await deps.bus.call(changeProviderConfig, { caller, ...disabled, ...change });
}

/**
 * Acts as the seeded cashier, by the commands of the till: takes the station, cancels its collection, voids its open
 * orders, and frees the station, also one that its owner has closed. Throws `busy` when the collection cannot be
 * cancelled in time.
 */
async function clearStation(
  context: Pick<SessionContext, "caller" | "deps">,
  sandbox: messages.Sandbox,
): Promise<void> {
  const { caller, deps } = context;
  const { stationId } = sandbox.station;
  const { userId, name } = sandbox.cashier;
  const ask = (by: "owner" | "cashier", command: RequestedCommand) =>
    deps.bus.command(stationId, {
      commandId: `sandbox_reset:${randomUUID()}`,
      actor: by === "owner" ? { kind: by, id: caller.userId, name: caller.name } : { kind: by, id: userId, name },
      command,
    });
  await ask("owner", { type: "lease_break" });
  await ask("cashier", { type: "lease_acquire" }).catch((error: unknown) => {
    // A closed station without a collection gives no lease. Its orders need none.
    if (!(error instanceof ApiError && error.code === "station_closed")) throw error;
  });
  await cancelCollection(context, stationId, (intentId) => ask("cashier", { type: "intent_cancel", intentId }));
  const cashier: Caller = {
    userId,
    name,
    organizationId: caller.organizationId,
    role: "cashier",
    permissions: ["payments.collect"],
  };
  await voidOpenOrders(context, stationId, cashier);
  await ask("cashier", { type: "lease_release" });
}

async function cancelCollection(
  { deps }: Pick<SessionContext, "deps">,
  stationId: number,
  cancel: (intentId: number) => Promise<unknown>,
): Promise<void> {
  const deadlineMs = performance.now() + LIMITS.sandboxCancelMs;
  for (;;) {
    const intent = deps.station(stationId)?.intent ?? null;
    if (intent === null) return;
    await cancel(intent.intentId).catch((error: unknown) => {
      // The collection has ended, or the payment seam settles it now. The next round reads which from the station.
      if (!(error instanceof ApiError)) throw error;
    });
    if (performance.now() > deadlineMs) {
      const detail = "The sandbox's collection is not cancelled yet; ask again in a few seconds.";
      throw new ApiError("busy", { detail, retryAfterMs: LIMITS.sandboxCancelMs });
    }
    await delay(LIMITS.sandboxPollMs);
  }
}

async function voidOpenOrders(
  { deps }: Pick<SessionContext, "deps">,
  stationId: number,
  cashier: Caller,
): Promise<void> {
  for (;;) {
    const { orders, hasMore } = await deps.bus.call(listOrders, { caller: cashier, stationId, status: "open" });
    for (const { orderId } of orders) await deps.bus.call(voidOrder, { caller: cashier, orderId });
    if (!hasMore) return;
  }
}

const root = "/api/backoffice/v1/sandboxes/";
const one = `${root}{sandbox_id}/` as const;
const freshReply = { description: "The sandbox, with its new codes and new password.", schema: freshSandboxSchema };

export const sandboxRoutes = [
  backofficeRoute({
    method: "GET",
    path: root,
    operation: "listSandboxes",
    summary: "List the sandboxes",
    description: "Deleted sandboxes are left out; their stations stay in the list of stations, as closed stations.",
    query: querySchema,
    replies: { 200: { description: "By id.", schema: sandboxesSchema } },
    handler: listSandboxes,
  }),
  backofficeRoute({
    method: "POST",
    path: root,
    operation: "seedSandbox",
    summary: "Seed a sandbox",
    description:
      "Creates a station for tests with a customer display, a smart POS companion and a cashier. If the filial has no active provider config of the mode `test`, the service activates its disabled config of the sandbox provider, or creates one. The station has the same endpoints, throttles, errors and kill switches as every other station; only its provider differs.",
    headers: creationHeaderSchema,
    body: seedBodySchema,
    replies: { 201: freshReply },
    errors: ["not_found", "conflict", "idempotency_key_reused", "already_created"],
    awaitsEffect: true,
    handler: seedSandbox,
  }),
  backofficeRoute({
    method: "GET",
    path: one,
    operation: "getSandbox",
    summary: "Read a sandbox",
    description: "Without the codes and the password: only the answers to a seed and a reset show them.",
    replies: { 200: { description: "The sandbox.", schema: sandboxSchema } },
    errors: ["not_found"],
    handler: getSandbox,
  }),
  backofficeRoute({
    method: "POST",
    path: `${one}reset/`,
    operation: "resetSandbox",
    summary: "Reset a sandbox",
    description:
      "Ends the credentials of the sandbox's devices, the sessions of its cashier, and the freezes of its station and its devices. Cancels its collection, voids its open orders and frees the station. The answer has new codes and a new password. The reset restores the settings that the last reset kept. It changes only what belongs to the sandbox, with the same events as at every station; ids, paid orders and certification artifacts stay. A new device replaces a revoked one. If a reset was interrupted, repeat it as a whole.",
    body: resetBodySchema,
    bodyOptional: true,
    replies: { 200: freshReply },
    errors: ["not_found", "device_limit_reached", "conflict", "busy"],
    awaitsEffect: true,
    handler: resetSandbox,
  }),
  backofficeRoute({
    method: "DELETE",
    path: one,
    operation: "deleteSandbox",
    summary: "Delete a sandbox",
    description:
      "Clears and closes the sandbox's station, revokes its devices and suspends its cashier. The audit log keeps its entries. If the service created or activated the provider config for a sandbox and no other sandbox uses it, the service disables it. A repetition gets the same answer and changes nothing; only where the first request ended before it disabled the config, the repetition disables it.",
    replies: { 204: { description: "It is deleted.", schema: null } },
    errors: ["not_found", "conflict", "busy"],
    awaitsEffect: true,
    handler: deleteSandbox,
  }),
];
