/** Changes to a config: its name, its settings, whether it is used. Payments under way keep the account they were asked for. */
import { isDeepStrictEqual } from "node:util";
import { requirePermission } from "../../bus/access.ts";
import type { changeProviderConfig } from "../../bus/messages/provider-configs.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { ProvidersDeps } from "../deps.ts";
import { checkReason } from "../issues/reason.ts";
import { choose, lockFilial } from "../sql/choices.ts";
import { findActiveConfig, findConfig, lockConfig, updateConfig } from "../sql/configs.ts";
import { personActor, recordEvents } from "../sql/events.ts";
import type { Json } from "../sql/json.ts";
import { announce } from "./announce.ts";
import { checkName } from "./checks.ts";
import { configOnWire } from "./config-wire.ts";
import { secondActive } from "./create-config.ts";

/** Refuses with `permission_denied`, `not_found`, `conflict` (a second active one) or `invalid_request`. */
export async function changeConfig(
  deps: ProvidersDeps,
  request: RequestOf<typeof changeProviderConfig>,
): Promise<ReplyOf<typeof changeProviderConfig>> {
  const { caller, configId, name, settings, status, reason } = request;
  requirePermission(caller, "organization.manage");
  if (name !== undefined) checkName(name);
  if (reason !== undefined) checkReason(reason);
  const { organizationId } = caller;
  const config = await deps.database.begin(async (sql) => {
    const known = await findConfig(sql, { organizationId, configId });
    if (known === undefined) throw new RefusedError({ code: "not_found" });
    const { filial_id: filialId, mode, kind } = known;
    // The filial first, as everywhere: so two changes in one filial follow one another.
    await lockFilial(sql, { organizationId, filialId });
    const before = await lockConfig(sql, { organizationId, configId });
    if (before === undefined) throw new RefusedError({ code: "not_found" });
    const next = {
      name: name ?? before.name,
      settings: settings === undefined ? before.settings : { ...deps.adapters[kind].checkSettings(settings) },
      status: status ?? before.status,
    };
    if (next.status === "active" && before.status !== "active") {
      if ((await findActiveConfig(sql, { filialId, mode })) !== undefined) throw secondActive(mode);
    }
    const changes = changesOf(before, next);
    if (Object.keys(changes).length === 0) return before;
    const row = await updateConfig(sql, configId, next);
    if (next.status !== before.status) {
      await choose(sql, { filialId, mode, configId: next.status === "active" ? configId : null });
    }
    const subject = { kind: "provider_config", id: configId } as const;
    const data = { ...changes, ...(reason === undefined ? {} : { reason }) };
    const actor = personActor(caller);
    await recordEvents(sql, [{ organizationId, actor, action: "provider_config_changed", subject, data }]);
    return row;
  });
  return { config: await configOnWire(deps.database, config), barrier: await announce(deps, config) };
}

interface Changeable {
  readonly name: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly status: string;
}

/** From what to what, of those that changed. */
function changesOf(before: Changeable, next: Changeable): Record<string, Json> {
  const changes: Record<string, Json> = {};
  for (const field of ["name", "settings", "status"] as const) {
    if (isDeepStrictEqual(before[field], next[field])) continue;
    changes[field] = { from: before[field] as Json, to: next[field] as Json };
  }
  return changes;
}
