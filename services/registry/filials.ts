/** Filials: the branches of an organization. */

import { requirePermission } from "../bus/messages/caller.ts";
import type * as filials from "../bus/messages/filials.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { createOnce } from "../db/creations.ts";
import type { Transaction } from "../db/pool.ts";
import type { RegistryHandler } from "./deps.ts";
import { ownerEvent } from "./events.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import { recordEvent } from "./sql/events.ts";
import * as sql from "./sql/filials.ts";

const filialMessage = (row: sql.FilialRow): filials.Filial => ({
  filialId: row.filial_id,
  name: row.name,
  createdAtMs: row.created_at.getTime(),
});

export const listFilials: RegistryHandler<typeof filials.listFilials> = async (deps, request) => {
  const { caller, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage", "reconciliation.manage");
  const rows = await sql.listFilials(deps.sql, { organizationId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(filialMessage), limit);
  return { filials: page, hasMore };
};

export const createFilial: RegistryHandler<typeof filials.createFilial> = async (deps, request) => {
  const { caller, name, creation } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const create = async (tx: Transaction): Promise<sql.FilialRow> => {
    if ((await sql.countFilials(tx, organizationId)) >= REGISTRY_LIMITS.filials) {
      const detail = `An organization has at most ${REGISTRY_LIMITS.filials} filials.`;
      throw new RefusedError({ code: "conflict", detail });
    }
    const row = await sql.createFilial(tx, organizationId, name);
    await recordEvent(tx, ownerEvent(caller, "filial_created", { kind: "filial", id: row.filial_id }, { name }));
    return row;
  };
  const again = (tx: Transaction, id: number) => sql.getFilial(tx, organizationId, id);
  const filial = await createOnce(deps.sql, creation, { create, again, idOf: (row) => row.filial_id });
  return { filial: filialMessage(filial) };
};

export const getFilial: RegistryHandler<typeof filials.getFilial> = async (deps, { caller, filialId }) => {
  requirePermission(caller, "organization.manage");
  return { filial: filialMessage(existing(await sql.getFilial(deps.sql, caller.organizationId, filialId))) };
};

/** With the present name it changes nothing and records no event. */
export const renameFilial: RegistryHandler<typeof filials.renameFilial> = async (deps, { caller, filialId, name }) => {
  requirePermission(caller, "organization.manage");
  return deps.sql.begin(async (tx) => {
    const before = existing(await sql.lockFilial(tx, caller.organizationId, filialId));
    if (before.name === name) return { filial: filialMessage(before) };
    const row = await sql.renameFilial(tx, filialId, name);
    const data = { from: before.name, to: name };
    await recordEvent(tx, ownerEvent(caller, "filial_renamed", { kind: "filial", id: filialId }, data));
    return { filial: filialMessage(row) };
  });
};
