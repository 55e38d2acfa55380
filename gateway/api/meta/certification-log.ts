/** The public log of certification artifacts, for verifiers: the public keys, the newest checkpoint, consistency proofs. */
import { z } from "zod";
import * as messages from "../../../services/bus/messages/certification-artifacts.ts";
import { ApiError, type Context, type Handler, ok } from "../../http/handler-context.ts";
import { queryNumber } from "../../http/page.ts";
import { anyone, type Route, route } from "../../http/route.ts";
import { timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { CERTIFICATION_LOG_RATE, throttleHeaders } from "../../read-model/throttles.ts";

const NAME = "device-payments/0b7e2a52-7c3d-4a5e-9d0f-5f1c6a7b8c9d";
const KEY = `${NAME}+1a2b3c4d+AdajmIB9R4Oh0Sk5lKmpWCtdA5hJ0Yq2kM3vXw8uT1Zy`;
const noteSchema = z
  .string()
  .meta({ description: "A signed note (C2SP tlog-checkpoint), byte for byte: name, size and root of the log." });
const logSchema = z
  .object({
    name: z.string(),
    size: z.int().min(0).meta({ description: "The number of statements: artifacts and revocations." }),
    checkpoint: noteSchema.nullable(),
    keys: z.array(
      z.object({
        key_id: z.string().meta({ description: "The id of the key, as in the envelopes." }),
        verifier_key: z.string().meta({ description: "`name+id+key` (C2SP signed-note): what a verifier needs." }),
        first_used_at: timestampSchema,
      }),
    ),
  })
  .meta({
    id: "CertificationLog",
    examples: [
      {
        name: NAME,
        size: 2,
        checkpoint: `${NAME}\n2\nqINS1GRFhWHwdkUeqLEoP4yEMkTBBzxBkGwGQlVlVcs=\n\n— ${NAME} GisjNA==\n`,
        keys: [{ key_id: "5d4a0c9f1f6e6a2b", verifier_key: KEY, first_used_at: "2026-11-24T09:02:11.000Z" }],
      },
    ],
  });
const consistencySchema = z
  .object({
    from: noteSchema,
    to: noteSchema,
    hashes: z.array(z.string()).meta({ description: "In base64: the proof of RFC 6962, section 2.1.2." }),
  })
  .meta({ id: "CertificationConsistency" });
const size = (description: string) => queryNumber({ least: 1 }).meta({ description });
const querySchema = z.strictObject({
  from: size("The smaller size, which the log had at its earlier checkpoint."),
  to: size("The larger size, up to the newest one."),
});

/** Takes a token of the throttle. Throws `throttled`. */
function take({ address, deps }: Pick<Context, "address" | "deps">): void {
  const retryAfterMs = deps.certificationLogThrottle.take(address, deps.nowMs());
  if (retryAfterMs > 0)
    throw new ApiError("throttled", {
      headers: throttleHeaders("certification-log", CERTIFICATION_LOG_RATE, retryAfterMs),
    });
}

const getCertificationLog: Handler = async (context) => {
  take(context);
  const { name, size: count, checkpoint, keys } = await context.deps.bus.call(messages.getCertificationLog, {});
  return ok({
    name,
    size: count,
    checkpoint,
    keys: keys.map(({ keyId, verifierKey, firstUsedAtMs }) => ({
      key_id: keyId,
      verifier_key: verifierKey,
      first_used_at: toTimestamp(firstUsedAtMs),
    })),
  });
};

const getCertificationConsistency: Handler<undefined, z.infer<typeof querySchema>> = async (context) => {
  take(context);
  const { from: fromSize, to: toSize } = context.query;
  return ok(await context.deps.bus.call(messages.getCertificationConsistency, { fromSize, toSize }));
};

const root = "/.well-known/certification-log/";

export const certificationLogRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: root,
    operation: "getCertificationLog",
    tag: "service",
    summary: "The log of certification artifacts",
    description:
      "The log's public keys and its newest checkpoint. Keep the checkpoint: a consistency proof for a later checkpoint shows that nothing was changed or removed. Throttled by client address.",
    who: anyone,
    replies: { 200: { description: "The log as it is now.", schema: logSchema } },
    errors: ["throttled"],
    handler: getCertificationLog,
  }),
  route({
    method: "GET",
    path: `${root}consistency/`,
    operation: "getCertificationConsistency",
    tag: "service",
    summary: "Prove that the log only grew",
    description:
      "The checkpoints of two sizes, and the proof that the larger log begins with the smaller one. Throttled by client address.",
    who: anyone,
    query: querySchema,
    replies: { 200: { description: "Both checkpoints and the proof.", schema: consistencySchema } },
    errors: ["throttled"],
    handler: getCertificationConsistency,
  }),
];
