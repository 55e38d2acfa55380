/** Signed closings of periods, and the public keys that verify them. */
import { z } from "zod";
import * as bus from "../../../services/bus/messages/reconciliation-closings.ts";
import { PERIOD_KINDS } from "../../../services/bus/messages/reconciliation-periods.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreBefore, pageBeforeQuery, queryId } from "../../http/page.ts";
import { reconciliationRoute } from "../../http/route.ts";
import { idSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { dateSchema } from "./line-json.ts";

const keyIdSchema = z.string().meta({
  description: "The first 16 hex digits of the SHA-256 of the public key.",
  examples: ["5d4a0c9f1f6e6a2b"],
});
const publicKeySchema = z.string().meta({
  description: "32 bytes in base64url.",
  examples: ["11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"],
});
const signatureSchema = z
  .object({
    algorithm: z.literal("Ed25519"),
    key_id: keyIdSchema,
    public_key: publicKeySchema,
    value: z.string().meta({ description: "64 bytes in base64url." }),
  })
  .meta({ id: "ClosingSignature" });

const EXAMPLE = {
  closing_id: 5,
  account_id: 3,
  kind: "day",
  from_date: "2026-11-20",
  to_date: "2026-11-20",
  closed_by: { user_id: 42, name: "Rita" },
  closed_at: "2026-11-25T08:00:00.000Z",
  reason: "All differences are decided.",
  lines: 120,
  issues: 4,
  after_closing: 0,
  statement: '{"account":{"account_id":3},"format":"device-payments/closing","version":1}',
  signature: {
    algorithm: "Ed25519",
    key_id: "5d4a0c9f1f6e6a2b",
    public_key: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    value: "5VZDAMNgrHKQhuLMgG6CioSHfx64kxAa6JGLxDlWk4mVDWJqWIH0JTiTFZGqYGp5Yk3ZWeqgUjvsE7Y5KuoHAw",
  },
} as const;

export const periodKindSchema = z
  .enum(PERIOD_KINDS)
  .meta({ id: "PeriodKind", description: "A day is a booking day of the statement's lines." });
export const closingSchema = z
  .object({
    closing_id: idSchema,
    account_id: idSchema,
    kind: periodKindSchema,
    from_date: dateSchema,
    to_date: dateSchema,
    closed_by: z.object({ user_id: idSchema, name: z.string() }),
    closed_at: timestampSchema,
    reason: z.string(),
    lines: z.int(),
    issues: z.int(),
    after_closing: z.int().meta({ description: "Lines and issues of its days that came after the closing." }),
    statement: z.string().meta({
      description:
        "The signed text, byte for byte: canonical JSON with counts, sums by currency and the hashes of all lines and issues.",
    }),
    signature: signatureSchema,
  })
  .meta({ id: "Closing", examples: [EXAMPLE] });
const closingsSchema = z.object({ closings: z.array(closingSchema), has_more: hasMoreBefore });
const closingsQuerySchema = z.strictObject({
  ...pageBeforeQuery,
  account_id: queryId()
    .optional()
    .meta({ description: "Only closings of this account; of all accounts when left out." }),
});
const keysSchema = z.object({
  keys: z.array(
    z
      .object({ key_id: keyIdSchema, public_key: publicKeySchema, first_used_at: timestampSchema })
      .meta({ id: "ClosingKey" }),
  ),
});

export function closingJson(closing: bus.Closing): z.infer<typeof closingSchema> {
  const { algorithm, keyId, publicKey, value } = closing.signature;
  return {
    closing_id: closing.closingId,
    account_id: closing.accountId,
    kind: closing.kind,
    from_date: closing.fromDate,
    to_date: closing.toDate,
    closed_by: { user_id: closing.closedBy.userId, name: closing.closedBy.name },
    closed_at: toTimestamp(closing.closedAtMs),
    reason: closing.reason,
    lines: closing.lines,
    issues: closing.issues,
    after_closing: closing.afterClosing,
    statement: closing.statement,
    signature: { algorithm, key_id: keyId, public_key: publicKey, value },
  };
}

const listClosings: SessionHandler<undefined, z.infer<typeof closingsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { account_id: accountId, before_id: beforeId, limit } = query;
  const { closings, hasMore } = await deps.bus.call(bus.listClosings, { caller, accountId, beforeId, limit });
  return ok({ closings: closings.map(closingJson), has_more: hasMore });
};

/** Error: `not_found`. */
const getClosing: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { closing } = await deps.bus.call(bus.getClosing, { caller, closingId: context.id("closing_id") });
  return ok(closingJson(closing));
};

const listClosingKeys: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { keys } = await deps.bus.call(bus.listClosingKeys, { caller });
  return ok({
    keys: keys.map(({ keyId, publicKey, firstUsedAtMs }) => ({
      key_id: keyId,
      public_key: publicKey,
      first_used_at: toTimestamp(firstUsedAtMs),
    })),
  });
};

const api = "/api/reconciliation/v1/" as const;

export const closingRoutes = [
  reconciliationRoute({
    method: "GET",
    path: `${api}closings/`,
    operation: "listClosings",
    summary: "List closings",
    description: "Each closing has the signed text and the signature.",
    query: closingsQuerySchema,
    replies: { 200: { description: "Newest first.", schema: closingsSchema } },
    handler: listClosings,
  }),
  reconciliationRoute({
    method: "GET",
    path: `${api}closings/{closing_id}/`,
    operation: "getClosing",
    summary: "Read a closing",
    description: "A closing never changes, except `after_closing`, which counts the lines and issues that came later.",
    replies: { 200: { description: "The closing.", schema: closingSchema } },
    errors: ["not_found"],
    handler: getClosing,
  }),
  reconciliationRoute({
    method: "GET",
    path: `${api}closing-keys/`,
    operation: "listClosingKeys",
    summary: "List the public keys of closings",
    description:
      "The keys of the installation: the current signing key and earlier ones, each from its first closing on.",
    replies: { 200: { description: "By first use.", schema: keysSchema } },
    handler: listClosingKeys,
  }),
];
