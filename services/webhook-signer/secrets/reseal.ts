/** What an older key has sealed is sealed anew at start, so that the older key can be thrown away. */
import type { Database } from "../../db/pool.ts";
import type { Keyring } from "../../runtime/keyring.ts";
import { UserError } from "../../runtime/user-error.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { lockSecretsOfOtherKeys, resealSecret } from "../sql/secrets.ts";
import { secretPlace } from "./endpoint-secrets.ts";

/** Returns how many there were. Throws UserError `webhook_secrets_key_unknown` for a secret whose key is not given. */
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
          "The database holds webhook secrets that WEBHOOK_SECRETS_KEY does not open; set the key they were written with, or put it into WEBHOOK_SECRETS_OLD_KEYS.";
        throw new UserError(sentence, { code: "webhook_secrets_key_unknown" });
      }
      const place = secretPlace(endpointId);
      await resealSecret(sql, secretId, keyring.seal(place, keyring.open(place, { keyId, nonce, sealed })));
    }
    return rows.length;
  });
}
