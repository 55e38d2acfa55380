/** A new secret in the place of another; for a while both are taken, so that no callback is lost in between. */

import { requirePermission } from "../../bus/access.ts";
import { BOUNDS } from "../../bus/bounds.ts";
import type { rotateProviderSecret } from "../../bus/messages/providers.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { ProviderError } from "../adapters/provider-error.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { accessOf } from "../secrets/live-secrets.ts";
import { providerSecretPlace } from "../secrets/secret-place.ts";
import { findConfig, lockConfig } from "../sql/configs.ts";
import { recordEvent } from "../sql/events.ts";
import { expireSecrets, insertSecret } from "../sql/secrets.ts";
import { checkSecret, refuseFields } from "./checks.ts";
import { configOnWire } from "./config-wire.ts";
import { providerAway } from "./create-config.ts";

/** Refuses with `permission_denied`, `not_found`, `invalid_request`, or `unavailable` when the provider had to be asked. */
export async function rotateSecret(
  deps: ProvidersDeps,
  request: RequestOf<typeof rotateProviderSecret>,
): Promise<ReplyOf<typeof rotateProviderSecret>> {
  const { caller, configId, name, secret: given, overlapMs } = request;
  requirePermission(caller, "organization.manage");
  if (given !== undefined) checkSecret("/secret", given);
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
  const signal = AbortSignal.timeout(PROVIDER_LIMITS.callMs / 2);
  const secret = await adapter
    .renewSecret(await accessOf(deps, known), { name, given }, signal)
    .catch((error: unknown) => {
      throw error instanceof ProviderError ? providerAway(known.kind, error) : error;
    });
  const config = await deps.database.begin(async (sql) => {
    const held = await lockConfig(sql, { organizationId, configId });
    if (held === undefined) throw new RefusedError({ code: "not_found" });
    const place = { configId, name };
    await expireSecrets(sql, { ...place, overlapMs });
    await insertSecret(sql, { ...place, ...deps.keyring.seal(providerSecretPlace(place), secret) });
    const subject = { kind: "provider_config", id: configId } as const;
    const data = { name, overlap_ms: overlapMs };
    await recordEvent(sql, { caller, action: "provider_secret_rotated", subject, data });
    return held;
  });
  const newSecrets: Record<string, string> = given === undefined ? { [name]: secret } : {};
  return { config: await configOnWire(deps.database, config), barrier: {}, newSecrets };
}
