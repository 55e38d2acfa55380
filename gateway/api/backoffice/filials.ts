/** Filials: the branches of an organization. For another organization's, the error is `not_found`. */
import { z } from "zod";
import * as messages from "../../../services/bus/messages/filials.ts";
import { creationHeaderSchema, creationOf } from "../../http/command-id.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, nameSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";

export const filialSchema = z
  .object({ filial_id: idSchema, name: z.string(), created_at: timestampSchema })
  .meta({ id: "Filial" });
export const filialsSchema = z.object({ filials: z.array(filialSchema), has_more: hasMoreAfter });
const querySchema = z.strictObject(pageAfterQuery);
export const createFilialBodySchema = z
  .strictObject({ name: nameSchema })
  .meta({ id: "CreateFilial", examples: [{ name: "Old Town" }] });

const renameBodySchema = z
  .strictObject({ name: nameSchema })
  .meta({ id: "RenameFilial", examples: [{ name: "Harbour" }] });

const filialJson = (filial: messages.Filial): z.infer<typeof filialSchema> => ({
  filial_id: filial.filialId,
  name: filial.name,
  created_at: toTimestamp(filial.createdAtMs),
});

const listFilials: SessionHandler<undefined, z.infer<typeof querySchema>> = async ({ caller, deps, query }) => {
  const { since_id: sinceId, limit } = query;
  const { filials, hasMore } = await deps.bus.call(messages.listFilials, { caller, sinceId, limit });
  return ok({ filials: filials.map(filialJson), has_more: hasMore });
};

const createFilial: SessionHandler<z.infer<typeof createFilialBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, name: body.name, creation: creationOf(context, "filial") };
  const { filial } = await deps.bus.call(messages.createFilial, request);
  return created(filialJson(filial));
};

const getFilial: SessionHandler = async ({ caller, deps, id }) => {
  const { filial } = await deps.bus.call(messages.getFilial, { caller, filialId: id("filial_id") });
  return ok(filialJson(filial));
};

const renameFilial: SessionHandler<z.infer<typeof renameBodySchema>> = async ({ caller, deps, body, id }) => {
  const request = { caller, filialId: id("filial_id"), name: body.name };
  const { filial } = await deps.bus.call(messages.renameFilial, request);
  return ok(filialJson(filial));
};

export const filialRoutes = [
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/filials/",
    operation: "listFilials",
    summary: "List the filials",
    description: "A filial is a branch of the organization. Each station belongs to one filial.",
    query: querySchema,
    replies: { 200: { description: "By id.", schema: filialsSchema } },
    handler: listFilials,
  }),
  backofficeRoute({
    method: "POST",
    path: "/api/backoffice/v1/filials/",
    operation: "createFilial",
    summary: "Add a filial",
    description: "A filial cannot be removed.",
    headers: creationHeaderSchema,
    body: createFilialBodySchema,
    replies: { 201: { description: "The filial.", schema: filialSchema } },
    errors: ["conflict", "idempotency_key_reused"],
    handler: createFilial,
  }),
  backofficeRoute({
    method: "GET",
    path: "/api/backoffice/v1/filials/{filial_id}/",
    operation: "getFilial",
    summary: "Read a filial",
    description: "The answer has the same fields as the list.",
    replies: { 200: { description: "The filial.", schema: filialSchema } },
    errors: ["not_found"],
    handler: getFilial,
  }),
  backofficeRoute({
    method: "PATCH",
    path: "/api/backoffice/v1/filials/{filial_id}/",
    operation: "renameFilial",
    summary: "Rename a filial",
    description: "Names need not be unique.",
    body: renameBodySchema,
    replies: { 200: { description: "The filial after the change.", schema: filialSchema } },
    errors: ["not_found"],
    handler: renameFilial,
  }),
];
