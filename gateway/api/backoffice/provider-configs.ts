/** The owner's payment providers. The API returns a secret once, when the service or the provider has made it. */
import { z } from "zod";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as bus from "../../../services/bus/messages/provider-configs.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery, queryId } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, nameSchema, reasonSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { LIMITS } from "../../limits.ts";

export const modeSchema = z
  .enum(bus.PROVIDER_MODES)
  .meta({ id: "Mode", description: "`test` serves sandbox stations; `live` serves all others." });
const providerKindSchema = z.enum(bus.PROVIDER_KINDS).meta({ id: "ProviderKind" });
const providerConfigStatusSchema = z
  .enum(["active", "disabled"])
  .meta({ id: "ProviderConfigStatus", description: "At most one config is active per filial and mode." });

const settingsSchema = z.record(z.string(), z.unknown()).meta({
  description:
    "The settings of this kind of provider that are not secret. `emvco_generic`: `merchant_account` {`tag`, `guid`, `merchant_id`, `terminal_id`}, `category_code`, `country`, `merchant_name`, `merchant_city`, `postal_code`; lengths in `docs/providers.md`. `sandbox`: nothing.",
});
const secretsSchema = z
  .record(z.string(), z.string())
  .meta({ description: "By name. `callback_secret` signs callbacks: 16 to 256 printable ASCII characters." });
const newSecretsSchema = secretsSchema.meta({
  description: "The secrets that this request created, by name. No later answer shows them.",
});

const providerConfigSchema = z
  .object({
    config_id: idSchema,
    filial_id: idSchema,
    kind: providerKindSchema,
    mode: modeSchema,
    name: z.string(),
    status: providerConfigStatusSchema,
    settings: settingsSchema,
    secrets: z
      .array(z.object({ name: z.string(), created_at: timestampSchema, expires_at: timestampSchema.nullable() }))
      .meta({
        description:
          "The names of the stored secrets, never their values; during a rotation, one name is listed several times.",
      }),
    callback_path: z.string().meta({ description: "Where the provider sends its callbacks." }),
    created_at: timestampSchema,
  })
  .meta({
    id: "ProviderConfig",
    examples: [
      {
        config_id: 5,
        filial_id: 1,
        kind: "sandbox",
        mode: "test",
        name: "Sandbox provider",
        status: "disabled",
        settings: {},
        secrets: [{ name: "callback_secret", created_at: "2026-11-20T12:00:00.000Z", expires_at: null }],
        callback_path: "/api/providers/v1/5/callback/",
        created_at: "2026-11-20T12:00:00.000Z",
      },
    ],
  });
const providerConfigsSchema = z.object({
  provider_configs: z.array(providerConfigSchema),
  has_more: hasMoreAfter,
});
const newProviderConfigSchema = z
  .object({ provider_config: providerConfigSchema, new_secrets: newSecretsSchema })
  .meta({ id: "NewProviderConfig" });

const providerConfigsQuerySchema = z.strictObject({
  ...pageAfterQuery,
  filial_id: queryId().optional().meta({
    description:
      "Only provider configs of this filial, by its id in the list of filials; of all filials when left out.",
  }),
});
export const createProviderConfigBodySchema = z
  .strictObject({
    filial_id: idSchema,
    kind: providerKindSchema,
    mode: modeSchema,
    name: nameSchema,
    settings: settingsSchema,
    secrets: secretsSchema.optional().meta({ description: "By name. The service generates those that are left out." }),
    reason: reasonSchema.optional(),
  })
  .meta({
    id: "CreateProviderConfig",
    examples: [{ filial_id: 1, kind: "sandbox", mode: "test", name: "Sandbox provider", settings: {} }],
  });
const changeProviderConfigBodySchema = z
  .strictObject({
    name: nameSchema.optional(),
    settings: settingsSchema.optional(),
    status: providerConfigStatusSchema.optional(),
    reason: reasonSchema.optional(),
  })
  .meta({ id: "ChangeProviderConfig", examples: [{ status: "disabled", reason: "The account was closed." }] });
const rotateProviderSecretBodySchema = z
  .strictObject({
    name: z.string().min(1).max(BOUNDS.nameCharacters),
    secret: z.string().optional().meta({ description: "The new secret. The service generates one if it is left out." }),
    overlap_seconds: z
      .int()
      .min(0)
      .max(BOUNDS.secretOverlapMs / 1_000)
      .default(LIMITS.secretOverlapUnlessAskedSeconds)
      .meta({ description: "How long the service accepts the older secrets too; a day when left out." }),
    reason: reasonSchema.optional(),
  })
  .meta({ id: "RotateProviderSecret", examples: [{ name: "callback_secret", overlap_seconds: 86_400 }] });

function providerConfigJson(config: bus.ProviderConfig): z.infer<typeof providerConfigSchema> {
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

const listProviderConfigs: SessionHandler<undefined, z.infer<typeof providerConfigsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { filial_id: filialId, since_id: sinceId, limit } = query;
  const { configs, hasMore } = await deps.bus.call(bus.listProviderConfigs, { caller, filialId, sinceId, limit });
  return ok({ provider_configs: configs.map(providerConfigJson), has_more: hasMore });
};

/** Errors: `not_found` for another organization's filial, `conflict` when the filial has an active config. */
const createProviderConfig: SessionHandler<z.infer<typeof createProviderConfigBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { filial_id: filialId, kind, mode, name, settings, secrets, reason } = body;
  const request = { caller, filialId, kind, mode, name, settings, secrets, reason };
  const { config, newSecrets } = await deps.bus.call(bus.createProviderConfig, request);
  return created({ provider_config: providerConfigJson(config), new_secrets: newSecrets });
};

const changeProviderConfig: SessionHandler<z.infer<typeof changeProviderConfigBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, configId: context.id("config_id"), ...body };
  const { config } = await deps.bus.call(bus.changeProviderConfig, request);
  return ok(providerConfigJson(config));
};

const rotateProviderSecret: SessionHandler<z.infer<typeof rotateProviderSecretBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { name, secret, overlap_seconds: overlapSeconds, reason } = body;
  const overlapMs = overlapSeconds * 1_000;
  const request = { caller, configId: context.id("config_id"), name, secret, overlapMs, reason };
  const { config, newSecrets } = await deps.bus.call(bus.rotateProviderSecret, request);
  return ok({ provider_config: providerConfigJson(config), new_secrets: newSecrets });
};

const configs = "/api/backoffice/v1/provider-configs/" as const;
const config = `${configs}{config_id}` as const;

export const providerConfigRoutes = [
  backofficeRoute({
    method: "GET",
    path: configs,
    operation: "listProviderConfigs",
    summary: "List the payment providers",
    description: "Oldest first. The list names the secrets and never shows them.",
    query: providerConfigsQuerySchema,
    replies: { 200: { description: "By id.", schema: providerConfigsSchema } },
    handler: listProviderConfigs,
  }),
  backofficeRoute({
    method: "POST",
    path: configs,
    operation: "createProviderConfig",
    summary: "Add a payment provider",
    description:
      "The provider serves dynamic QR at the stations of one filial. Secrets are stored encrypted and never shown again.",
    body: createProviderConfigBodySchema,
    replies: {
      201: { description: "The config, with the secrets that this request created.", schema: newProviderConfigSchema },
    },
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: createProviderConfig,
  }),
  backofficeRoute({
    method: "PATCH",
    path: `${config}/`,
    operation: "changeProviderConfig",
    summary: "Change, disable or enable a payment provider",
    description:
      "When the config is disabled, the service requests no further payment from the provider, and the stations withdraw the route `dynamic_qr`. The service still accepts callbacks about earlier payments.",
    body: changeProviderConfigBodySchema,
    replies: { 200: { description: "The config after the change.", schema: providerConfigSchema } },
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: changeProviderConfig,
  }),
  backofficeRoute({
    method: "POST",
    path: `${config}/rotate/`,
    operation: "rotateProviderSecret",
    summary: "Replace a secret of a payment provider",
    description:
      "The service accepts callbacks signed with an older secret until the overlap ends. If the answer with the new secret was lost, make another one: no older one ends earlier than its own overlap or that of a later rotation. At most eight are valid; another rotation is refused with `conflict`, unless its overlap is 0, which ends all older ones at once.",
    body: rotateProviderSecretBodySchema,
    replies: {
      200: { description: "The config, with the secret if the service generated it.", schema: newProviderConfigSchema },
    },
    errors: ["not_found", "conflict"],
    handler: rotateProviderSecret,
  }),
];
