/**
 * How an answer says that a change is stored and not yet effective:
 *
 *   effective answer      answer to a change that is not yet effective
 *   200 with a body       202 with the same body and `"effective": false`
 *   204 without a body    202 with `{"effective": false}`
 *   201                   201 with the same body: what was created exists, and enroll's body is the contract's
 *
 * Each of them has the header `X-Effective: false`. The document has this for each route with `awaitsEffect`.
 */
import { z } from "zod";
import type { Reply } from "./handler-context.ts";
import type { ReplyFacts, Route } from "./route.ts";

export const EFFECTIVE_HEADER = "X-Effective";

const effective = z.literal(false).meta({
  description: "The change is stored. It takes effect by itself, as soon as the relay delivers it.",
});
const noBodySchema = z.object({ effective }).meta({ id: "NotYetEffective", examples: [{ effective: false }] });

const STORED =
  "The change is stored, and not yet effective: gateways and stations still act as before. It takes effect by itself. The same request again is answered as usual once it is effective, where it can be repeated.";
const headerSchema = z.object({
  [EFFECTIVE_HEADER]: z.literal("false").meta({ description: `Always there in this answer. ${STORED}` }),
});
const optionalHeaderSchema = z.object({
  [EFFECTIVE_HEADER]: z.literal("false").optional().meta({
    description: `Only there while what was created is stored and not yet known everywhere; until then it can be refused as unknown. It becomes known by itself.`,
  }),
});

/** The good answers of a route, by status, with those to a change that is not yet effective. */
export function repliesOf(route: Route): Readonly<Record<string, ReplyFacts>> {
  if (route.awaitsEffect !== true) return route.replies;
  const { 201: created, ...others } = route.replies;
  const done = others[200] ?? others[204];
  return {
    ...others,
    ...(created === undefined
      ? {}
      : { 201: { ...created, headers: created.headers?.extend(optionalHeaderSchema.shape) ?? optionalHeaderSchema } }),
    ...(done === undefined
      ? {}
      : { 202: { description: STORED, schema: notYetEffectiveSchema(done.schema), headers: headerSchema } }),
  };
}

/** By the schema of the effective answer, so that operations with one answer share the other one too. */
const extended = new Map<z.ZodType, z.ZodObject>();

function notYetEffectiveSchema(schema: z.ZodType | null): z.ZodObject {
  if (schema === null) return noBodySchema;
  const known = extended.get(schema);
  if (known !== undefined) return known;
  const { id, examples } = schema.meta() ?? {};
  if (!(schema instanceof z.ZodObject) || id === undefined || !Array.isArray(examples) || examples.length === 0)
    throw new Error("The answer of a route with `awaitsEffect` is an object with a name and an example.");
  const made = schema.extend({ effective }).meta({
    id: `${id}NotYetEffective`,
    examples: examples.map((example) => ({ ...(example as object), effective: false })),
  });
  extended.set(schema, made);
  return made;
}

/** The answer to a change that is stored and not yet effective, from the answer to an effective one. */
export function notEffective(reply: Reply): Reply {
  const headers = { ...reply.headers, [EFFECTIVE_HEADER]: "false" };
  if (reply.status === 201) return { ...reply, headers };
  return { ...reply, status: 202, body: { ...(reply.body as object | undefined), effective: false }, headers };
}
