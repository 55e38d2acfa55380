import { BOUNDS } from "../../bus/bounds.ts";
import type { createFilial, getFilial, listFilials, renameFilial } from "../../bus/messages/filials.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { firstPage } from "../../bus/page.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { RegistryDeps } from "../deps.ts";
import { REGISTRY_LIMITS } from "../limits.ts";
import { requirePermission } from "../permissions.ts";
import * as filials from "../sql/filials.ts";
import { recordEvent, userActor } from "../sql/registry-events.ts";
import { filialOnWire } from "../wire.ts";

export async function handleListFilials(
  deps: RegistryDeps,
  { caller, sinceId = 0, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listFilials>,
): Promise<ReplyOf<typeof listFilials>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const rows = await filials.listFilials(deps.sql, { organizationId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(filialOnWire), limit);
  return { filials: page, hasMore };
}

export async function handleCreateFilial(
  deps: RegistryDeps,
  { caller, name }: RequestOf<typeof createFilial>,
): Promise<ReplyOf<typeof createFilial>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  return deps.sql.begin(async (tx) => {
    if ((await filials.countFilials(tx, organizationId)) >= REGISTRY_LIMITS.filials) {
      const detail = `An organization has at most ${REGISTRY_LIMITS.filials} filials.`;
      throw new RefusedError({ code: "conflict", detail });
    }
    const filial = await filials.insertFilial(tx, organizationId, name);
    const subject = { kind: "filial", id: filial.filial_id } as const;
    const actor = userActor(caller);
    await recordEvent(tx, { organizationId, actor, action: "filial_created", subject, data: { name } });
    return { filial: filialOnWire(filial) };
  });
}

export async function handleGetFilial(
  deps: RegistryDeps,
  { caller, filialId }: RequestOf<typeof getFilial>,
): Promise<ReplyOf<typeof getFilial>> {
  requirePermission(caller, "organization.manage");
  const filial = await filials.findFilial(deps.sql, caller.organizationId, filialId);
  if (filial === undefined) throw new RefusedError({ code: "not_found" });
  return { filial: filialOnWire(filial) };
}

/** The same name again changes nothing. */
export async function handleRenameFilial(
  deps: RegistryDeps,
  { caller, filialId, name }: RequestOf<typeof renameFilial>,
): Promise<ReplyOf<typeof renameFilial>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  return deps.sql.begin(async (tx) => {
    const before = await filials.lockFilial(tx, organizationId, filialId);
    if (before === undefined) throw new RefusedError({ code: "not_found" });
    if (before.name === name) return { filial: filialOnWire(before) };
    const filial = await filials.setFilialName(tx, filialId, name);
    const subject = { kind: "filial", id: filialId } as const;
    const data = { from: before.name, to: name };
    await recordEvent(tx, { organizationId, actor: userActor(caller), action: "filial_renamed", subject, data });
    return { filial: filialOnWire(filial) };
  });
}
