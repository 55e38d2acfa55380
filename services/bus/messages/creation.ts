/** Names a request that makes something: its repetition makes nothing more (I6). */
import { z } from "zod";

/** The id is from the person, the operation and the `Idempotency-Key`; the digest shows another request under the same key. */
export const creationSchema = z.object({ id: z.string().min(1).max(200), digest: z.string().min(1).max(100) });
export type Creation = z.infer<typeof creationSchema>;
