/** Settings that an owner gave, held against an adapter's schema. */
import type { z } from "zod";
import { invalidRequest } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";

/** Throws `RefusedError` `invalid_request` with a pointer for each field, below `/settings`. */
export function checkedSettings<TSchema extends z.ZodType>(schema: TSchema, settings: unknown): z.infer<TSchema> {
  const parsed = schema.safeParse(settings);
  if (parsed.success) return parsed.data;
  const refusal = invalidRequest(parsed.error);
  const errors = (refusal.errors ?? []).map(({ pointer, detail }) => ({ pointer: `/settings${pointer}`, detail }));
  throw new RefusedError({ ...refusal, errors });
}
