/** Filials (branches) of the owner's organization. */
import type { z } from "zod";
import { createFilial, getFilial, listFilials, renameFilial } from "../../../services/bus/messages/filials.ts";
import type { createFilialBodySchema, filialsQuerySchema, renameFilialBodySchema } from "../../contract/backoffice.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { filialWire } from "./place-wire.ts";

export const listOwnFilials: SessionHandler<undefined, z.infer<typeof filialsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { since_id: sinceId, limit } = query;
  const { filials, hasMore } = await deps.bus.call(listFilials, { caller, sinceId, limit });
  return ok({ filials: filials.map(filialWire), has_more: hasMore });
};

/** Refusal: `conflict` when the organization has as many as it may. */
export const createOwnFilial: SessionHandler<z.infer<typeof createFilialBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { filial } = await deps.bus.call(createFilial, { caller, name: body.name });
  return created(filialWire(filial));
};

export const getOwnFilial: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { filial } = await deps.bus.call(getFilial, { caller, filialId: context.id("filial_id") });
  return ok(filialWire(filial));
};

export const renameOwnFilial: SessionHandler<z.infer<typeof renameFilialBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { filial } = await deps.bus.call(renameFilial, {
    caller,
    filialId: context.id("filial_id"),
    name: body.name,
  });
  return ok(filialWire(filial));
};
