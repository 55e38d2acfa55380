/** The secrets of provider configs. They are stored sealed, and read for each use so that a rotation counts at once. */
import { createHash, timingSafeEqual } from "node:crypto";
import { RefusedError } from "../bus/refusals.ts";
import type { Database, Queryable, Transaction } from "../db/pool.ts";
import type { Keyring } from "../runtime/keyring.ts";
import { UserError } from "../runtime/user-error.ts";
import { CALLBACK_SECRET, type ProviderAccess } from "./adapters/adapter.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import type { ConfigRow } from "./sql/configs.ts";
import { listLiveSecrets, listSecretsOfOthers, lockSecretsOfOtherKeys, resealSecret } from "./sql/secrets.ts";

interface SecretsDeps {
  readonly keyring: Keyring;
  readonly database: Queryable;
}

/** The secrets of one config, by name, the newest first. */
type SecretsByName = Readonly<Record<string, readonly string[]>>;

export async function liveSecrets(deps: SecretsDeps, configId: number): Promise<SecretsByName> {
  return (await liveSecretsOf(deps, [configId])).get(configId) ?? {};
}

/** The live secrets of several configs, by config. */
export async function liveSecretsOf(
  deps: SecretsDeps,
  configIds: readonly number[],
): Promise<ReadonlyMap<number, SecretsByName>> {
  const opened = new Map<number, Record<string, string[]>>();
  for (const row of await listLiveSecrets(deps.database, configIds)) {
    const { config_id: configId, name, key_id: keyId, nonce, sealed } = row;
    const secret = deps.keyring.open(providerSecretPlace({ configId, name }), { keyId, nonce, sealed });
    const ofConfig = opened.get(configId) ?? {};
    ofConfig[name] = [...(ofConfig[name] ?? []), secret];
    opened.set(configId, ofConfig);
  }
  return opened;
}

/** What an adapter needs to call the provider. */
export async function accessOf(
  deps: SecretsDeps,
  config: Pick<ConfigRow, "config_id" | "settings">,
): Promise<ProviderAccess> {
  return { settings: config.settings, secrets: await liveSecrets(deps, config.config_id) };
}

/**
 * A callback secret belongs to one config for ever. Two configs that share one would both accept the same signed
 * callback, and each could pay with it. Refuses with `conflict`, which names the other config. The caller stores the
 * secret in the same transaction.
 */
export async function requireUnsharedCallbackSecret(
  tx: Transaction,
  deps: { readonly keyring: Keyring },
  candidate: {
    readonly organizationId: number;
    readonly configId: number;
    readonly name: string;
    readonly secret: string;
  },
): Promise<void> {
  if (candidate.name !== CALLBACK_SECRET) return;
  for (const row of await listSecretsOfOthers(tx, candidate)) {
    const { config_id: configId, name, key_id: keyId, nonce, sealed } = row;
    if (!isSame(deps.keyring.open(providerSecretPlace({ configId, name }), { keyId, nonce, sealed }), candidate.secret))
      continue;
    const detail = `Config ${configId} has this callback secret, so both would receive the same callbacks. Use that config, or bring another secret.`;
    throw new RefusedError({ code: "conflict", detail });
  }
}

function isSame(one: string, other: string): boolean {
  const [left, right] = [one, other].map((secret) => createHash("sha256").update(secret).digest());
  return left !== undefined && right !== undefined && timingSafeEqual(left, right);
}

/**
 * At the start, seals every secret of an older key again, so that the older key can be removed. Returns how many it has
 * sealed. Throws UserError `provider_secrets_key_unknown` for a secret whose key is not set.
 */
export async function resealSecrets(database: Database, keyring: Keyring): Promise<number> {
  let total = 0;
  for (;;) {
    const resealed = await resealSome(database, keyring);
    total += resealed;
    if (resealed < PROVIDER_LIMITS.secretsResealedAtOnce) return total;
  }
}

async function resealSome(database: Database, keyring: Keyring): Promise<number> {
  return await database.begin(async (tx) => {
    const rows = await lockSecretsOfOtherKeys(tx, keyring.currentKeyId, PROVIDER_LIMITS.secretsResealedAtOnce);
    for (const { secret_id, config_id: configId, name, key_id: keyId, nonce, sealed } of rows) {
      if (!keyring.has(keyId)) {
        const sentence =
          'PROVIDER_SECRETS_KEY does not open some provider secrets in the database. Set the key that sealed them, or add it to PROVIDER_SECRETS_OLD_KEYS. Where that key is lost, follow "When a secret is lost" in docs/operations.md.';
        throw new UserError(sentence, { code: "provider_secrets_key_unknown" });
      }
      const place = providerSecretPlace({ configId, name });
      await resealSecret(tx, secret_id, keyring.seal(place, keyring.open(place, { keyId, nonce, sealed })));
    }
    return rows.length;
  });
}

/** The place of a provider's secret, for the keyring: what was sealed for one place does not open in another. */
export function providerSecretPlace({ configId, name }: { readonly configId: number; readonly name: string }): string {
  return `provider-secret:${configId}:${name}`;
}
