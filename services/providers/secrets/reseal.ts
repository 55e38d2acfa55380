/** What an older key has sealed is sealed anew at start, so that the older key can be thrown away. */

import type { Database } from "../../db/pool.ts";
import type { Keyring } from "../../runtime/keyring.ts";
import { UserError } from "../../runtime/user-error.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { lockSecretsOfOtherKeys, resealSecret } from "../sql/secrets.ts";
import { providerSecretPlace } from "./secret-place.ts";

/** Returns how many there were. Throws UserError `provider_secrets_key_unknown` for a secret whose key is not given. */
export async function resealSecrets(database: Database, keyring: Keyring): Promise<number> {
  let total = 0;
  for (;;) {
    const resealed = await resealSome(database, keyring);
    total += resealed;
    if (resealed < PROVIDER_LIMITS.secretsResealedAtOnce) return total;
  }
}

async function resealSome(database: Database, keyring: Keyring): Promise<number> {
  return await database.begin(async (sql) => {
    const rows = await lockSecretsOfOtherKeys(sql, keyring.currentKeyId, PROVIDER_LIMITS.secretsResealedAtOnce);
    for (const { secret_id, config_id: configId, name, key_id: keyId, nonce, sealed } of rows) {
      if (!keyring.has(keyId)) {
        const sentence =
          "The database holds provider secrets that PROVIDER_SECRETS_KEY does not open; set the key they were written with, or put it into PROVIDER_SECRETS_OLD_KEYS.";
        throw new UserError(sentence, { code: "provider_secrets_key_unknown" });
      }
      const place = providerSecretPlace({ configId, name });
      await resealSecret(sql, secret_id, keyring.seal(place, keyring.open(place, { keyId, nonce, sealed })));
    }
    return rows.length;
  });
}
