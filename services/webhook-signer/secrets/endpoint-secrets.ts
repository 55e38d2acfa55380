/** The secrets that sign deliveries: made here, shown once, kept sealed, opened for each batch so that a rotation counts at once. */
import { randomBytes } from "node:crypto";
import type { Database } from "../../db/pool.ts";
import type { Keyring } from "../../runtime/keyring.ts";
import type { Log } from "../../runtime/log.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { listLiveSecrets } from "../sql/secrets.ts";

/** A new secret as its owner is shown it; the whole text is the key of the signature. */
export function newSecret(): string {
  return `whsec_${randomBytes(SIGNER_LIMITS.secretBytes).toString("base64url")}`;
}

/** Where an endpoint's secrets belong, for the keyring. */
export const secretPlace = (endpointId: number): string => `webhook-secret:${endpointId}`;

/** Newest first; an endpoint whose secret does not open has none, and its deliveries fail by name. */
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
