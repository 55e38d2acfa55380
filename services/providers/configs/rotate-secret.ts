/** A new secret in the place of another; for a while both are taken, so that no callback is lost in between. */

import { requirePermission } from "../../bus/access.ts";
import { BOUNDS } from "../../bus/bounds.ts";
import type { rotateProviderSecret } from "../../bus/messages/provider-configs.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { Transaction } from "../../db/pool.ts";
import { ProviderError } from "../adapters/provider-error.ts";
import type { ProvidersDeps } from "../deps.ts";
import { checkReason } from "../issues/reason.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { accessOf } from "../secrets/live-secrets.ts";
import { requireOwnSecret } from "../secrets/one-config-each.ts";
import { providerSecretPlace } from "../secrets/secret-place.ts";
import { type ConfigRow, findConfig, lockConfig } from "../sql/configs.ts";
import { personActor, recordEvents } from "../sql/events.ts";
import { expireSecrets, holdRotation, insertSecret } from "../sql/secrets.ts";
import { checkSecret, refuseFields } from "./checks.ts";
import { configOnWire } from "./config-wire.ts";
import { providerAway } from "./create-config.ts";

/**
 * Refuses with `permission_denied`, `not_found`, `invalid_request`, `conflict` when another config has the secret or one
 * is just being replaced, or `unavailable` when the provider had to be asked.
 */
export async function rotateSecret(
  deps: ProvidersDeps,
  request: RequestOf<typeof rotateProviderSecret>,
): Promise<ReplyOf<typeof rotateProviderSecret>> {
  const { caller, configId, name, secret: given, overlapMs, reason } = request;
  requirePermission(caller, "organization.manage");
  if (given !== undefined) checkSecret("/secret", given);
  if (reason !== undefined) checkReason(reason);
  if (overlapMs > BOUNDS.secretOverlapMs) {
    refuseFields({ pointer: "/overlap_seconds", detail: "an old secret is taken for seven days at most" });
  }
  const { organizationId } = caller;
  const known = await findConfig(deps.database, { organizationId, configId });
  if (known === undefined) throw new RefusedError({ code: "not_found" });
  const adapter = deps.adapters[known.kind];
  if (!adapter.secretNames.includes(name)) {
    refuseFields({ pointer: "/name", detail: `this config has the secrets ${adapter.secretNames.join(", ")}` });
  }
  const { config, secret } = await deps.database.begin(async (sql) => {
    // Held over the renewal: of two at once the later one at the provider would not have to be the later one here.
    if (!(await holdRotation(sql, configId))) {
      throw new RefusedError({ code: "conflict", detail: "A secret of this config is just being replaced." });
    }
    const renewed = await renew(deps, sql, { config: known, name, given });
    const held = await lockConfig(sql, { organizationId, configId });
    if (held === undefined) throw new RefusedError({ code: "not_found" });
    const place = { configId, name };
    await requireOwnSecret(sql, deps, { ...place, organizationId, secret: renewed });
    await expireSecrets(sql, { ...place, overlapMs });
    await insertSecret(sql, { ...place, ...deps.keyring.seal(providerSecretPlace(place), renewed) });
    const subject = { kind: "provider_config", id: configId } as const;
    const data = { name, overlap_ms: overlapMs, ...(reason === undefined ? {} : { reason }) };
    const actor = personActor(caller);
    await recordEvents(sql, [{ organizationId, actor, action: "provider_secret_rotated", subject, data }]);
    return { config: held, secret: renewed };
  });
  const newSecrets: Record<string, string> = given === undefined ? { [name]: secret } : {};
  return { config: await configOnWire(deps.database, config), newSecrets };
}

/** A new secret, in force at the provider. Its access is read behind the lock, so that it is not one just replaced. */
async function renew(
  deps: ProvidersDeps,
  sql: Transaction,
  renewal: { readonly config: ConfigRow; readonly name: string; readonly given: string | undefined },
): Promise<string> {
  const { config, name, given } = renewal;
  const access = await accessOf({ database: sql, keyring: deps.keyring }, config);
  const signal = AbortSignal.timeout(PROVIDER_LIMITS.renewMs);
  try {
    return await deps.adapters[config.kind].renewSecret(access, { name, given }, signal);
  } catch (error) {
    throw error instanceof ProviderError ? providerAway(config.kind, error) : error;
  }
}
