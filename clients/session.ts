/** The session of a person for one command. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { createBackoff, pause, repeatUntilAnswered } from "./http/pace.ts";
import { ServiceError, type ServiceRequest, type ServiceTransport } from "./http/transport.ts";
import { clientLimits } from "./limits.ts";

const sessionSchema = z.looseObject({ token: z.string() });

export type Session = Awaited<ReturnType<typeof openSession>>;

/** Throws `ServiceError` or `ServiceUnreachable`, as each of its functions does. */
export async function openSession(deps: {
  readonly transport: ServiceTransport;
  readonly details: { readonly email: string; readonly password: string };
  readonly signal: AbortSignal;
}) {
  const { transport, details, signal } = deps;
  // Each request can be repeated safely: it is a read, has a key, or changes nothing when repeated.
  const send = <TSchema extends z.ZodType>(request: Omit<ServiceRequest, "signal">, schema: TSchema, until = signal) =>
    repeatUntilAnswered(() => transport.send({ ...request, signal: until }, schema), {
      signal: until,
      maxTries: clientLimits.triggerTries,
    });
  const opened = await send({ method: "POST", path: "session/", body: details }, sessionSchema);
  const { token: credential } = opened.body;
  if (!opened.isEffective) await untilSessionIsEffective({ transport, credential, signal });
  return {
    credential,
    read: async <TSchema extends z.ZodType>(path: string, schema: TSchema) =>
      (await send({ method: "GET", path, credential }, schema)).body,
    act: async <TSchema extends z.ZodType>(path: string, body: object, schema: TSchema) =>
      (await send({ method: "POST", path, body, credential, key: randomUUID() }, schema)).body,
    remove: async (path: string): Promise<void> =>
      void (await send({ method: "DELETE", path, credential }, z.looseObject({}).optional())),
    /** Works also after an abort of the signal. A body in the answer means that the end is stored but not yet effective. */
    logOut: () =>
      send(
        { method: "DELETE", path: "session/", credential },
        z.looseObject({}).optional(),
        AbortSignal.timeout(clientLimits.requestTimeoutMs),
      ),
  };
}

/** Waits until the session is effective: before that, the service refuses it as unknown. Throws the refusal after some tries. */
async function untilSessionIsEffective(request: {
  readonly transport: ServiceTransport;
  readonly credential: string;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { transport, credential, signal } = request;
  const backoff = createBackoff({ firstMs: clientLimits.backoffFirstMs, maxMs: clientLimits.unknownMaxMs });
  for (let tries = 1; ; tries += 1) {
    try {
      await transport.send({ method: "GET", path: "session/", credential, signal }, z.looseObject({}));
      return;
    } catch (error) {
      const isUnknown = error instanceof ServiceError && error.httpStatus === 401;
      if (!isUnknown || tries >= clientLimits.triggerTries || signal.aborted) throw error;
      await pause(backoff.nextMs(), signal);
    }
  }
}
