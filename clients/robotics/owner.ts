/** The owner's API, as far as it makes events happen. A session lasts for one command. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ServiceRefusal } from "../device-error.ts";
import type { DeviceRequest, DeviceTransport } from "../device-transport.ts";
import { clientLimits } from "../limits.ts";
import { createBackoff, pause } from "../pace.ts";
import { repeatUntilAnswered } from "../repeat.ts";

const consumerSchema = z.looseObject({
  consumer_id: z.int(),
  filial_id: z.int(),
  name: z.string(),
  status: z.string(),
});
const consumersSchema = z.looseObject({ robotics_consumers: z.array(consumerSchema), has_more: z.boolean() });
const taskSchema = z.looseObject({ task_id: z.int(), display_number: z.int(), status: z.string() });
const filialSchema = z.looseObject({ filial_id: z.int(), paused: z.boolean() });
const sessionSchema = z.looseObject({ token: z.string() });

export type Consumer = z.infer<typeof consumerSchema>;
export type Task = z.infer<typeof taskSchema>;

export interface Owner {
  consumers(): Promise<readonly Consumer[]>;
  offer(consumerId: number, validForSeconds: number | undefined): Promise<Task>;
  task(taskId: number): Promise<Task>;
  cancel(taskId: number): Promise<Task>;
  isPaused(filialId: number): Promise<boolean>;
  pause(filialId: number): Promise<void>;
  resume(filialId: number): Promise<void>;
  logOut(): Promise<void>;
}

const REASON = { reason: "Triggered by a developer." };

/** Throws `ServiceRefusal` or `ServiceUnreachable`, as each of its functions does. */
export async function logIn(deps: {
  readonly transport: DeviceTransport;
  readonly details: { readonly email: string; readonly password: string };
  readonly signal: AbortSignal;
}): Promise<Owner> {
  const { transport, details, signal } = deps;
  // All of them may be repeated as they are: reads, what has a key, and what is done only once however often it is asked for.
  const ask = async <TSchema extends z.ZodType>(
    request: Omit<DeviceRequest, "signal">,
    schema: TSchema,
  ): Promise<z.infer<TSchema>> => {
    const attempt = () => transport.send({ ...request, signal }, schema);
    return (await repeatUntilAnswered(attempt, { signal, maxTries: clientLimits.triggerTries }))
      .body as z.infer<TSchema>;
  };
  const open = () => transport.send({ method: "POST", path: "session/", body: details, signal }, sessionSchema);
  const opened = await repeatUntilAnswered(open, { signal, maxTries: clientLimits.triggerTries });
  const { token: credential } = opened.body as z.infer<typeof sessionSchema>;
  if (!opened.isEffective) await untilSessionIsKnown({ transport, credential, signal });
  const read = <TSchema extends z.ZodType>(path: string, schema: TSchema) =>
    ask({ method: "GET", path, credential }, schema);
  const act = <TSchema extends z.ZodType>(path: string, body: object, schema: TSchema) =>
    ask({ method: "POST", path, body, credential, key: randomUUID() }, schema);
  /** All of them, page by page. */
  const consumers = async (): Promise<readonly Consumer[]> => {
    const all: Consumer[] = [];
    for (let hasMore = true; hasMore; ) {
      const path = `robotics-consumers/?limit=500&since_id=${all.at(-1)?.consumer_id ?? 0}`;
      const { robotics_consumers: page, has_more } = await read(path, consumersSchema);
      all.push(...page);
      hasMore = has_more && page.length > 0;
    }
    return all;
  };
  return {
    consumers,
    offer: (consumerId, validForSeconds) =>
      act(
        "serving-tasks/",
        {
          consumer_id: consumerId,
          leg: "kitchen_to_table",
          manifest: [{ name: "Soup of the day", quantity: 2 }],
          destination: { name: "Table 12" },
          ...(validForSeconds === undefined ? {} : { valid_for_seconds: validForSeconds }),
        },
        taskSchema,
      ),
    task: (taskId) => read(`serving-tasks/${taskId}/`, taskSchema),
    cancel: (taskId) => act(`serving-tasks/${taskId}/cancel/`, REASON, taskSchema),
    isPaused: async (filialId) => (await read(`filials/${filialId}/robotics/`, filialSchema)).paused,
    pause: async (filialId) => void (await act(`filials/${filialId}/robotics/pause/`, REASON, filialSchema)),
    resume: async (filialId) => void (await act(`filials/${filialId}/robotics/resume/`, REASON, filialSchema)),
    logOut: async () => {
      // Without a body, or with one that says that the end of the session is stored and not yet effective.
      await ask({ method: "DELETE", path: "session/", credential }, z.looseObject({}).optional());
    },
  };
}

/** A session that is not yet effective is refused as unknown; throws that refusal when it still is after some tries. */
async function untilSessionIsKnown(request: {
  readonly transport: DeviceTransport;
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
      const isUnknown = error instanceof ServiceRefusal && error.httpStatus === 401;
      if (!isUnknown || tries >= clientLimits.triggerTries || signal.aborted) throw error;
      await pause(backoff.nextMs(), signal);
    }
  }
}
