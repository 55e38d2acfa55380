/** A config as the messages show it: which secrets are stored, never what they are. */
import type { ProviderConfig } from "../../bus/messages/provider-configs.ts";
import type { Queryable } from "../../db/pool.ts";
import type { ConfigRow } from "../sql/configs.ts";
import { listLiveSecrets } from "../sql/secrets.ts";

export async function configsOnWire(sql: Queryable, rows: readonly ConfigRow[]): Promise<ProviderConfig[]> {
  const secrets = await listLiveSecrets(
    sql,
    rows.map((row) => row.config_id),
  );
  return rows.map((row) => ({
    configId: row.config_id,
    filialId: row.filial_id,
    kind: row.kind,
    mode: row.mode,
    name: row.name,
    status: row.status,
    settings: row.settings,
    secrets: secrets
      .filter((secret) => secret.config_id === row.config_id)
      .map(({ name, created_at, expires_at }) => ({
        name,
        createdAtMs: created_at.getTime(),
        expiresAtMs: expires_at?.getTime() ?? null,
      })),
    createdAtMs: row.created_at.getTime(),
  }));
}

export async function configOnWire(sql: Queryable, row: ConfigRow): Promise<ProviderConfig> {
  const [config] = await configsOnWire(sql, [row]);
  if (config === undefined) throw new Error("A config has no wire form.");
  return config;
}
