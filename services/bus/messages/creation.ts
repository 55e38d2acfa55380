/** Identifies a request that creates something, so that its repetition creates nothing more (I6). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";

/**
 * The id is made from the person, the operation and the `Idempotency-Key`. Another digest shows another request with
 * the same key.
 */
export const creationSchema = z.object({
  id: z.string().min(1).max(BOUNDS.commandIdCharacters),
  digest: z.string().min(1).max(BOUNDS.digestCharacters),
});
export type Creation = z.infer<typeof creationSchema>;

/** The key of another request whose repetition has no second effect. PostgreSQL's text has no NUL and no half of a surrogate pair. */
export const idempotencyKeySchema = z
  .string()
  .min(1)
  .max(BOUNDS.idempotencyKeyCharacters)
  .regex(/^[^\0\p{Cs}]*$/u);
