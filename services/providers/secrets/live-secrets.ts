/** The secrets that a config works with now, opened. They are read for each use, so that a rotation counts at once. */
import type { Queryable } from "../../db/pool.ts";
import type { ProviderAccess } from "../adapters/adapter.ts";
import type { ProvidersDeps } from "../deps.ts";
import type { ConfigRow } from "../sql/configs.ts";
import { listLiveSecrets } from "../sql/secrets.ts";
import { providerSecretPlace } from "./secret-place.ts";

interface SecretsDeps extends Pick<ProvidersDeps, "keyring"> {
  readonly database: Queryable;
}

/** The secrets of one config, by name, the newest first. */
export type SecretsByName = Readonly<Record<string, readonly string[]>>;

export async function liveSecrets(deps: SecretsDeps, configId: number): Promise<SecretsByName> {
  return (await liveSecretsOf(deps, [configId])).get(configId) ?? {};
}

/** Those of several configs, by config. */
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

/** What an adapter needs to speak to the provider. */
export async function accessOf(
  deps: SecretsDeps,
  config: Pick<ConfigRow, "config_id" | "settings">,
): Promise<ProviderAccess> {
  return { settings: config.settings, secrets: await liveSecrets(deps, config.config_id) };
}
