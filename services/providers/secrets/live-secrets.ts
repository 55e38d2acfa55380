/** The secrets that a config works with now, opened. They are read for each use, so that a rotation counts at once. */

import type { ProviderAccess } from "../adapters/adapter.ts";
import type { ProvidersDeps } from "../deps.ts";
import type { ConfigRow } from "../sql/configs.ts";
import { listLiveSecrets } from "../sql/secrets.ts";
import { providerSecretPlace } from "./secret-place.ts";

/** By name, the newest first. */
export async function liveSecrets(
  deps: Pick<ProvidersDeps, "database" | "keyring">,
  configId: number,
): Promise<Readonly<Record<string, readonly string[]>>> {
  const opened: Record<string, string[]> = {};
  for (const row of await listLiveSecrets(deps.database, [configId])) {
    const { name, key_id: keyId, nonce, sealed } = row;
    const secret = deps.keyring.open(providerSecretPlace({ configId, name }), { keyId, nonce, sealed });
    opened[name] = [...(opened[name] ?? []), secret];
  }
  return opened;
}

/** What an adapter needs to speak to the provider. */
export async function accessOf(
  deps: Pick<ProvidersDeps, "database" | "keyring">,
  config: Pick<ConfigRow, "config_id" | "settings">,
): Promise<ProviderAccess> {
  return { settings: config.settings, secrets: await liveSecrets(deps, config.config_id) };
}
