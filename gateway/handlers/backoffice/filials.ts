/** Filials (branches) of the owner's organization. */
import type { z } from "zod";
import { createFilial, listFilials } from "../../../services/bus/messages/registry.ts";
import type { createFilialBodySchema } from "../../contract/backoffice.ts";
import { created, ok, type SessionHandler } from "../context.ts";
import { filialWire } from "./place-wire.ts";

export const listOwnFilials: SessionHandler = async ({ caller, deps }) => {
  const { filials } = await deps.bus.call(listFilials, { caller });
  return ok({ filials: filials.map(filialWire) });
};

/** Refusal: `already_exists`. */
export const createOwnFilial: SessionHandler<z.infer<typeof createFilialBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { filial } = await deps.bus.call(createFilial, { caller, name: body.name });
  return created(filialWire(filial));
};
