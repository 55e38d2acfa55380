/**
 * Filials: the branches of an organization. All operations need `organization.manage`. Another organization's id is
 * `not_found`.
 */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { callerSchema as caller } from "./caller.ts";
import { creationSchema as creation } from "./creation.ts";
import { nameSchema as name } from "./name.ts";

const id = z.int().positive();

export const filialSchema = z.object({ filialId: id, name: z.string(), createdAtMs: z.number() });
export type Filial = z.infer<typeof filialSchema>;

export const listFilials = repeatable(
  "registry.listFilials",
  z.object({ caller, ...pageAfter }),
  z.object({ filials: z.array(filialSchema), hasMore: z.boolean() }),
);
/** Refuses with `conflict` when the organization has the most filials that it may have. */
export const createFilial = once(
  "registry.createFilial",
  z.object({ caller, name, creation: creation.optional() }),
  z.object({ filial: filialSchema }),
);
export const getFilial = repeatable(
  "registry.getFilial",
  z.object({ caller, filialId: id }),
  z.object({ filial: filialSchema }),
);
export const renameFilial = once(
  "registry.renameFilial",
  z.object({ caller, filialId: id, name }),
  z.object({ filial: filialSchema }),
);
