/** Names a request that makes something: its repetition makes nothing more (I6). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";

/** The id is from the person, the operation and the `Idempotency-Key`; the digest shows another request under the same key. */
export const creationSchema = z.object({
  id: z.string().min(1).max(BOUNDS.commandIdCharacters),
  digest: z.string().min(1).max(BOUNDS.digestCharacters),
});
export type Creation = z.infer<typeof creationSchema>;
