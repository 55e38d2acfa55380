/** A new provider config. Its secrets are shown this once, and only those that were made here or by the provider. */

import { requirePermission } from "../../bus/access.ts";
import type { createProviderConfig } from "../../bus/messages/provider-configs.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { Transaction } from "../../db/pool.ts";
import type { PreparedConfig } from "../adapters/adapter.ts";
import { ProviderError } from "../adapters/provider-error.ts";
import type { ProvidersDeps } from "../deps.ts";
import { checkReason } from "../issues/reason.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { requireOwnSecret } from "../secrets/one-config-each.ts";
import { providerSecretPlace } from "../secrets/secret-place.ts";
import { choose, lockFilial } from "../sql/choices.ts";
import { type ConfigRow, countConfigs, findActiveConfig, insertConfig } from "../sql/configs.ts";
import { type ProviderActor, personActor, recordEvents } from "../sql/events.ts";
import { insertSecret } from "../sql/secrets.ts";
import { announce } from "./announce.ts";
import { checkName, checkSecret, refuseFields } from "./checks.ts";
import { configOnWire } from "./config-wire.ts";

type Request = RequestOf<typeof createProviderConfig>;

/**
 * Active from the start; the trail names `actor`. Refuses with `permission_denied`, `not_found` (the filial), `conflict`
 * (it has an active config of that mode, the organization too many, or another config the secret), `invalid_request`, or `unavailable` when the
 * provider had to be asked.
 */
export async function createConfig(
  deps: ProvidersDeps,
  request: Request,
  actor: ProviderActor = personActor(request.caller),
): Promise<ReplyOf<typeof createProviderConfig>> {
  const { caller, filialId, kind, mode, name, reason } = request;
  requirePermission(caller, "organization.manage");
  check(deps, request);
  // Asked once before, so that no account is opened at a provider for a config that cannot be.
  await deps.database.begin((sql) => requirePlace(sql, request));
  const prepared = await prepare(deps, request);
  const config = await deps.database.begin(async (sql) => {
    await requirePlace(sql, request);
    const { organizationId } = caller;
    const row = await insertConfig(sql, { organizationId, filialId, kind, mode, name, settings: prepared.settings });
    const configId = row.config_id;
    for (const [secretName, secret] of Object.entries(prepared.secrets)) {
      const place = { configId, name: secretName };
      await requireOwnSecret(sql, deps, { ...place, organizationId, secret });
      await insertSecret(sql, { ...place, ...deps.keyring.seal(providerSecretPlace(place), secret) });
    }
    await choose(sql, { filialId, mode, configId });
    const subject = { kind: "provider_config", id: configId } as const;
    const facts = { filial_id: filialId, kind, mode, name, secrets: Object.keys(prepared.secrets) };
    const data = { ...facts, ...(reason === undefined ? {} : { reason }) };
    await recordEvents(sql, [{ organizationId, actor, action: "provider_config_created", subject, data }]);
    return row;
  });
  const barrier = await announce(deps, config);
  return { config: await configOnWire(deps.database, config), barrier, newSecrets: { ...prepared.newSecrets } };
}

function check(deps: ProvidersDeps, { kind, mode, name, secrets = {}, reason }: Request): void {
  checkName(name);
  if (reason !== undefined) checkReason(reason);
  if (kind === "sandbox" && mode === "live") {
    refuseFields({ pointer: "/mode", detail: "the sandbox provider moves no money, so it is for tests only" });
  }
  for (const [secretName, secret] of Object.entries(secrets)) {
    const pointer = `/secrets/${secretName}`;
    if (!deps.adapters[kind].secretNames.includes(secretName)) {
      refuseFields({
        pointer,
        detail: `a config of this kind has the secrets ${deps.adapters[kind].secretNames.join(", ")}`,
      });
    }
    checkSecret(pointer, secret);
  }
}

async function requirePlace(sql: Transaction, { caller, filialId, mode }: Request): Promise<void> {
  const { organizationId } = caller;
  if (!(await lockFilial(sql, { organizationId, filialId }))) throw new RefusedError({ code: "not_found" });
  if ((await findActiveConfig(sql, { filialId, mode })) !== undefined) throw secondActive(mode);
  if ((await countConfigs(sql, organizationId)) >= PROVIDER_LIMITS.configs) {
    const detail = `An organization has at most ${PROVIDER_LIMITS.configs} provider configs.`;
    throw new RefusedError({ code: "conflict", detail });
  }
}

export function secondActive(mode: ConfigRow["mode"]): RefusedError {
  const detail = `This filial has an active ${mode} config already; disable that one first.`;
  return new RefusedError({ code: "conflict", detail });
}

async function prepare(deps: ProvidersDeps, request: Request): Promise<PreparedConfig> {
  const { kind, name, settings, secrets = {} } = request;
  const signal = AbortSignal.timeout(PROVIDER_LIMITS.renewMs);
  try {
    return await deps.adapters[kind].prepare({ name, settings, secrets }, signal);
  } catch (error) {
    if (error instanceof ProviderError) throw providerAway(kind, error);
    throw error;
  }
}

/** A provider that had to be asked and did not do it. */
export function providerAway(kind: ConfigRow["kind"], error: ProviderError): RefusedError {
  if (error.failure !== "provider_refused") {
    const detail = "The provider does not answer now; nothing was changed.";
    return new RefusedError({ code: "unavailable", detail, retryAfterMs: PROVIDER_LIMITS.askAgainMs });
  }
  return new RefusedError({ code: "conflict", detail: `The provider (${kind}) has refused this.` });
}
