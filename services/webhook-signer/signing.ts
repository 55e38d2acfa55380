/**
 * The body and the signature of a delivery (contract, "Webhook envelope" and "Signature"), and the secrets that sign: made
 * here, shown once, stored sealed.
 */
import { createHmac, randomBytes } from "node:crypto";
import type { Database } from "../db/pool.ts";
import type { Keyring } from "../runtime/keyring.ts";
import type { Log } from "../runtime/log.ts";
import { UserError } from "../runtime/user-error.ts";
import { SIGNER_LIMITS } from "./limits.ts";
import { listLiveSecrets, lockSecretsOfOtherKeys, resealSecret } from "./sql/endpoints.ts";

/** One type and its payload, as the contract lists them. */
interface EnvelopeFacts {
  readonly deliveryId: number;
  readonly eventType: string;
  /** ISO 8601 with milliseconds, UTC. */
  readonly createdAt: string;
  readonly payload: object;
}

/** The bytes that are stored, signed and sent: made once, the same in each attempt. */
export function envelope({ deliveryId, eventType, createdAt, payload }: EnvelopeFacts): string {
  return JSON.stringify({ delivery_id: deliveryId, event_type: eventType, created_at: createdAt, payload });
}

export const SIGNATURE_HEADER = "X-Service-Robotics-Signature";

/**
 * `t=<unix seconds>,v1=<hex>`, with one `v1` for each live secret, the newest first. Each is HMAC-SHA256 over
 * `<t>.<raw body>`, keyed with the secret's text as it was shown.
 */
export function signatureHeader(secrets: readonly string[], { body, nowMs }: { body: string; nowMs: number }): string {
  const t = Math.floor(nowMs / 1_000);
  const signatures = secrets.map((secret) => `v1=${createHmac("sha256", secret).update(`${t}.${body}`).digest("hex")}`);
  return [`t=${t}`, ...signatures].join(",");
}

/** A new secret as its owner is shown it; the whole text is the key of the signature. */
export function newSecret(): string {
  return `whsec_${randomBytes(SIGNER_LIMITS.secretBytes).toString("base64url")}`;
}

/** The keyring's place for the secrets of an endpoint. */
export const secretPlace = (endpointId: number): string => `webhook-secret:${endpointId}`;

/**
 * The live secrets, newest first. An endpoint whose secrets do not open has none: its attempts fail as
 * `secret_unreadable`.
 */
export async function openSecrets(
  {
    database,
    keyring,
    log,
  }: { readonly database: Database; readonly keyring: Keyring; readonly log: Pick<Log, "error"> },
  endpointIds: readonly number[],
): Promise<ReadonlyMap<number, readonly string[]>> {
  const opened = new Map<number, string[]>(endpointIds.map((endpointId) => [endpointId, []]));
  for (const { endpoint_id: endpointId, key_id: keyId, nonce, sealed } of await listLiveSecrets(
    database,
    endpointIds,
  )) {
    try {
      opened.get(endpointId)?.push(keyring.open(secretPlace(endpointId), { keyId, nonce, sealed }));
    } catch (error) {
      log.error({ err: error, endpointId }, "a webhook secret does not open");
    }
  }
  return opened;
}

/**
 * Seals every secret of an older key again; returns how many. Throws UserError `webhook_secrets_key_unknown` for a
 * secret whose key is not set.
 */
export async function resealSecrets(database: Database, keyring: Keyring): Promise<number> {
  for (let total = 0; ; ) {
    const resealed = await resealSome(database, keyring);
    total += resealed;
    if (resealed < SIGNER_LIMITS.secretsPerReseal) return total;
  }
}

async function resealSome(database: Database, keyring: Keyring): Promise<number> {
  return await database.begin(async (sql) => {
    const rows = await lockSecretsOfOtherKeys(sql, keyring.currentKeyId, SIGNER_LIMITS.secretsPerReseal);
    for (const { secret_id: secretId, endpoint_id: endpointId, key_id: keyId, nonce, sealed } of rows) {
      if (!keyring.has(keyId)) {
        const sentence =
          'WEBHOOK_SECRETS_KEY does not open some webhook secrets in the database. Set the key that sealed them, or add it to WEBHOOK_SECRETS_OLD_KEYS. Where that key is lost, follow "When a secret is lost" in docs/operations.md.';
        throw new UserError(sentence, { code: "webhook_secrets_key_unknown" });
      }
      const place = secretPlace(endpointId);
      await resealSecret(sql, secretId, keyring.seal(place, keyring.open(place, { keyId, nonce, sealed })));
    }
    return rows.length;
  });
}
