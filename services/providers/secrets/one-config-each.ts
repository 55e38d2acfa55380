/**
 * A callback secret is one config's, for good. Two configs that share one would take the same signed callback for two
 * monies, and each could pay: the payment seam knows a money by its config and the provider's reference.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { RefusedError } from "../../bus/refusals.ts";
import type { Transaction } from "../../db/pool.ts";
import { CALLBACK_SECRET } from "../adapters/adapter.ts";
import type { ProvidersDeps } from "../deps.ts";
import { listSecretsOfOthers } from "../sql/secrets.ts";
import { providerSecretPlace } from "./secret-place.ts";

/** Refuses with `conflict`, which names the other config. The caller stores the secret in the same transaction. */
export async function requireOwnSecret(
  sql: Transaction,
  deps: Pick<ProvidersDeps, "keyring">,
  given: {
    readonly organizationId: number;
    readonly configId: number;
    readonly name: string;
    readonly secret: string;
  },
): Promise<void> {
  if (given.name !== CALLBACK_SECRET) return;
  for (const row of await listSecretsOfOthers(sql, given)) {
    const { config_id: configId, name, key_id: keyId, nonce, sealed } = row;
    if (!isSame(deps.keyring.open(providerSecretPlace({ configId, name }), { keyId, nonce, sealed }), given.secret))
      continue;
    const detail = `Config ${configId} has this callback secret, so both would be told of the same money. Use that config, or bring another secret.`;
    throw new RefusedError({ code: "conflict", detail });
  }
}

function isSame(one: string, other: string): boolean {
  const [left, right] = [one, other].map((secret) => createHash("sha256").update(secret).digest());
  return left !== undefined && right !== undefined && timingSafeEqual(left, right);
}
