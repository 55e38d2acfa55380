/** Sends one request twice, as if two processes carried it out and the second one was late. */
import { createInbox, type NatsConnection } from "nats";
import { expect } from "vitest";
import type { z } from "zod";
import type { Operation, SentRequestOf } from "../../services/bus/operation.ts";

/** Sends a request and returns a function that sends it again. Both have the same reply inbox. */
export async function carryOut<TOperation extends Operation<z.ZodType, z.ZodType>>(
  nc: NatsConnection,
  { subject }: TOperation,
  request: SentRequestOf<TOperation>,
): Promise<() => Promise<unknown>> {
  const inbox = createInbox();
  const send = async (): Promise<unknown> => {
    const answered = Promise.withResolvers<unknown>();
    const subscription = nc.subscribe(inbox, {
      callback: (_, message) => {
        const body = message.json<object>();
        if (!("working" in body)) answered.resolve(body);
      },
    });
    nc.publish(subject, JSON.stringify(request), { reply: inbox });
    return await answered.promise.finally(() => subscription.unsubscribe());
  };
  expect(await send()).toHaveProperty("reply");
  return send;
}
