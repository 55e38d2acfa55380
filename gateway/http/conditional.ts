/** Polls with an entity tag (contract, "GET assignment", "GET display"): the headers, and the answer 304. */
import { z } from "zod";

export const conditionalHeaderSchema = z.object({
  "If-None-Match": z
    .string()
    .optional()
    .meta({
      description:
        "The `ETag` of the last 200 answer, as it was received. Where it still is the current one, the answer is 304. A list of tags and `*` (any tag) work too.",
      examples: ['W/"mJ0iXf3lM9vT2bQwZr5K"'],
    }),
});
export const etagHeaderSchema = z.object({
  ETag: z.string().meta({ description: "Weak; `server_time` is left out of it." }),
});

export const unchanged = {
  description:
    "Unchanged: the `ETag` in `If-None-Match` is still current. No body, and not an error: keep the last 200 answer, and its `ETag`. It counts as a request of the throttle.",
  schema: null,
  headers: etagHeaderSchema,
};
