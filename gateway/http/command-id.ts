/** Makes command ids. A station runs a command once per id, and a repetition gets the same answer (I6). */
import { createHash, randomUUID } from "node:crypto";
import { z } from "zod";
import { digestOf } from "../../machines/digest.ts";
import type { Creation } from "../../services/bus/messages/creation.ts";
import { LIMITS } from "../limits.ts";
import { ApiError, type ConsumerContext, type SessionContext } from "./handler-context.ts";

const KEY_DESCRIPTION = `Any text of up to ${LIMITS.idempotencyKeyCharacters} characters, scoped to the person, the operation and the thing it is about. The same key with another body is refused with \`idempotency_key_reused\`.`;
const KEY_EXAMPLE = "6f1c1c0e-1c55-4c38-9b57-2f6f3d0a7f0e";

/** The key of a command that runs once. A repetition gets the same answer; for a lease, the current lease. */
export const idempotencyHeaderSchema = z.object({
  "Idempotency-Key": z
    .string()
    .max(LIMITS.idempotencyKeyCharacters)
    .optional()
    .meta({
      description: KEY_DESCRIPTION,
      examples: [KEY_EXAMPLE],
    }),
});

/** The key of an object that is created once. */
export const creationHeaderSchema = z.object({
  "Idempotency-Key": idempotencyHeaderSchema.shape["Idempotency-Key"].meta({
    description: `${KEY_DESCRIPTION} A repetition answers with what the first request made, as it is now; where the answer has something that is shown once, it is refused with \`already_created\`.`,
    examples: [KEY_EXAMPLE],
  }),
});

/** The identity of the object that a request creates, from its `Idempotency-Key`. Undefined without a key. */
export function creationOf(
  context: SessionContext<object, unknown>,
  kind: string,
  subjectId = context.caller.organizationId,
): Creation | undefined {
  const sent = requestDigest(context);
  return sent === undefined ? undefined : { id: sessionCommandId(context, kind, subjectId), digest: sent };
}

/**
 * The id of a person's command, from the user, the kind of command, its subject and the `Idempotency-Key` header. Without a key
 * it is random, so that a repetition is a new command. The id has a hash of the key, because an id is bounded and a key may
 * have any characters.
 */
export function sessionCommandId(context: SessionContext<unknown, unknown>, kind: string, subjectId: number): string {
  const key = idempotencyKey(context);
  if (key === undefined) return `${kind}:${randomUUID()}`;
  return `${kind}:${context.caller.userId}:${subjectId}:${digest(key)}`;
}

/** As `sessionCommandId`, for a robotics consumer. Undefined without a key. */
export function consumerCommandId(context: ConsumerContext, kind: string, subjectId: number): string | undefined {
  const key = idempotencyKey(context);
  return key && `${kind}:${context.consumer.consumerId}:${subjectId}:${digest(key)}`;
}

/** The `Idempotency-Key` header, or undefined when it was not sent. Throws `invalid_request` when it is too long. */
export function idempotencyKey(context: Pick<SessionContext, "header">): string | undefined {
  const key = context.header("idempotency-key");
  if (key === "") return undefined;
  if (key.length > LIMITS.idempotencyKeyCharacters) {
    const detail = `The Idempotency-Key header is longer than ${LIMITS.idempotencyKeyCharacters} characters.`;
    throw new ApiError("invalid_request", {
      errors: [{ pointer: "", code: "too_long", limit: LIMITS.idempotencyKeyCharacters, detail }],
    });
  }
  return key;
}

/** A digest of the body, to detect another request under the same `Idempotency-Key`. Undefined without a key. */
export function requestDigest(context: SessionContext<object, unknown>): string | undefined {
  if (idempotencyKey(context) === undefined) return undefined;
  const members = Object.entries(context.body).filter(([, value]) => value !== undefined);
  return digestOf(JSON.stringify(members.toSorted(([a], [b]) => (a < b ? -1 : 1))));
}

/**
 * The id of a device's report, from device, intent and `client_idempotency_key`. The contract makes a report idempotent under
 * that key, and two devices or two intents may use the same key. A key may have any length and any characters, so the id has a
 * hash of the whole key: the key must not be a reason to reject a report.
 */
export function reportCommandId(deviceId: number, intentId: number, clientKey: string | undefined): string {
  if (clientKey === undefined || clientKey === "") return `report:${randomUUID()}`;
  return `report:${deviceId}:${intentId}:${digest(clientKey)}`;
}

/**
 * Different keys get different digests. Hashing encodes text as UTF-8, which replaces every half of a surrogate pair by the same
 * character. So a key with such a half is hashed as JSON, which keeps each half, and gets a mark.
 */
function digest(key: string): string {
  return key.isWellFormed() ? sha256(key) : `json.${sha256(JSON.stringify(key))}`;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
