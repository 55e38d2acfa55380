/** What was written for consumers leaves at once, instead of at the relay's next look. */
import type { NatsConnection } from "nats";
import { flushOutbox } from "../bus/messages/relay.ts";
import { call } from "../bus/operation.ts";
import { filialKey } from "../db/outbox.ts";
import type { Log } from "../runtime/log.ts";
import { ROBOTICS_LIMITS } from "./limits.ts";

export type Announce = (filialId: number) => void;

/** Nobody waits for it: without an answer the relay finds the rows a moment later. */
export function announcer(nc: NatsConnection, log: Pick<Log, "warn">): Announce {
  return (filialId) => {
    call(nc, flushOutbox, { key: filialKey(filialId) }, ROBOTICS_LIMITS.flushTimeoutMs).catch((error: unknown) => {
      log.warn({ reason: String(error), filialId }, "the relay did not deliver at once");
    });
  };
}
