/** The owner's payment providers. Secrets come out once, when they were made here. */
import type { z } from "zod";
import {
  changeProviderConfig,
  createProviderConfig,
  listProviderConfigs,
  type ProviderConfig,
  rotateProviderSecret,
} from "../../../services/bus/messages/providers.ts";
import type {
  changeProviderConfigBodySchema,
  createProviderConfigBodySchema,
  providerConfigSchema,
  providerConfigsQuerySchema,
  rotateSecretBodySchema,
} from "../../contract/provider.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";

export const listOwnProviderConfigs: SessionHandler<undefined, z.infer<typeof providerConfigsQuerySchema>> = async (
  context,
) => {
  const { caller, deps, query } = context;
  const { filial_id: filialId, since_id: sinceId, limit } = query;
  const { configs, hasMore } = await deps.bus.call(listProviderConfigs, { caller, filialId, sinceId, limit });
  return ok({ provider_configs: configs.map(configWire), has_more: hasMore });
};

/** Refusals: `not_found` for a foreign filial, `conflict` when one is active there already. */
export const createOwnProviderConfig: SessionHandler<z.infer<typeof createProviderConfigBodySchema>> = async (
  context,
) => {
  const { caller, deps, body } = context;
  const { filial_id: filialId, kind, mode, name, settings, secrets, reason } = body;
  const request = { caller, filialId, kind, mode, name, settings, secrets, reason };
  const { config, newSecrets } = await deps.bus.call(createProviderConfig, request);
  return created({ provider_config: configWire(config), new_secrets: newSecrets });
};

export const changeOwnProviderConfig: SessionHandler<z.infer<typeof changeProviderConfigBodySchema>> = async (
  context,
) => {
  const { caller, deps, body } = context;
  const request = { caller, configId: context.id("config_id"), ...body };
  const { config } = await deps.bus.call(changeProviderConfig, request);
  return ok(configWire(config));
};

export const rotateOwnProviderSecret: SessionHandler<z.infer<typeof rotateSecretBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { name, secret, overlap_seconds: overlapSeconds, reason } = body;
  const overlapMs = overlapSeconds * 1_000;
  const request = { caller, configId: context.id("config_id"), name, secret, overlapMs, reason };
  const { config, newSecrets } = await deps.bus.call(rotateProviderSecret, request);
  return ok({ provider_config: configWire(config), new_secrets: newSecrets });
};

function configWire(config: ProviderConfig): z.infer<typeof providerConfigSchema> {
  return {
    config_id: config.configId,
    filial_id: config.filialId,
    kind: config.kind,
    mode: config.mode,
    name: config.name,
    status: config.status,
    settings: config.settings,
    secrets: config.secrets.map(({ name, createdAtMs, expiresAtMs }) => ({
      name,
      created_at: toTimestamp(createdAtMs),
      expires_at: expiresAtMs === null ? null : toTimestamp(expiresAtMs),
    })),
    callback_path: `/api/providers/v1/${config.configId}/callback/`,
    created_at: toTimestamp(config.createdAtMs),
  };
}
