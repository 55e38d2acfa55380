/**
 * Follows the stream of events by one durable consumer, which all processes share. While one batch is being written the
 * next one gathers; an event is acknowledged when it is written, so a process that dies leaves it to the others.
 */
import { setTimeout as delay } from "node:timers/promises";
import { AckPolicy, type ConsumerMessages, type JsMsg, jetstream } from "@nats-io/jetstream";
import { nanos } from "nats";
import type { Bus } from "../../bus/connection.ts";
import { type PublishedRoboticsEvent, publishedRoboticsEventSchema } from "../../bus/messages/robotics-events.ts";
import { ROBOTICS_EVENTS } from "../../bus/streams.ts";
import type { Log } from "../../runtime/log.ts";
import { SIGNER_LIMITS } from "../limits.ts";

const DURABLE = "webhook-signer";

export interface EventFollower {
  stop(): Promise<void>;
}

export interface FollowOptions {
  readonly bus: Bus;
  readonly log: Log;
  /** Writes events down; when it rejects they come again. */
  readonly take: (events: readonly PublishedRoboticsEvent[]) => Promise<void>;
}

interface Arrived {
  readonly message: JsMsg;
  readonly published: PublishedRoboticsEvent;
}

/** Rejects when the stream cannot be followed at first; later it is followed anew, whatever happens to it. */
export async function followEvents({ bus, log, take }: FollowOptions): Promise<EventFollower> {
  const stopping = new AbortController();
  const { signal } = stopping;
  let messages = await consume(bus);
  const run = async (): Promise<void> => {
    let isTold = false;
    while (!signal.aborted) {
      try {
        await follow(messages, { log, take });
        isTold = false;
      } catch (error) {
        if (!isTold && !signal.aborted) log.warn({ err: error }, "the events of robotics cannot be followed now");
        isTold = true;
      }
      if (signal.aborted) return;
      await delay(SIGNER_LIMITS.followPauseMs, undefined, { signal }).catch(() => undefined);
      // A bus that lost its data has lost the consumer as well; the stream is made anew by whoever publishes.
      messages = await consume(bus).catch(() => messages);
      if (signal.aborted) await messages.close();
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await messages.close();
      await running;
    },
  };
}

async function consume({ jsm, nc }: Bus): Promise<ConsumerMessages> {
  await jsm.consumers.add(ROBOTICS_EVENTS.name, {
    durable_name: DURABLE,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(SIGNER_LIMITS.ackWaitMs),
    max_ack_pending: SIGNER_LIMITS.eventsPerBatch * 4,
  });
  // The client asks for the consumer again when its server falls silent, and waits for the answer as long as this.
  const js = jetstream(nc, { timeout: SIGNER_LIMITS.consumerAnswerMs });
  const consumer = await js.consumers.get(ROBOTICS_EVENTS.name, DURABLE);
  return await consumer.consume({
    max_messages: SIGNER_LIMITS.eventsPerBatch,
    expires: SIGNER_LIMITS.pullExpiresMs,
    idle_heartbeat: SIGNER_LIMITS.pullHeartbeatMs,
    abort_on_missing_resource: true,
  });
}

/** Until the messages end; rejects when what they come from is gone. */
async function follow(messages: ConsumerMessages, { log, take }: Pick<FollowOptions, "log" | "take">): Promise<void> {
  const waiting: Arrived[] = [];
  let writing: Promise<void> | undefined;
  const write = async (): Promise<void> => {
    // What has arrived in the same turn of the event loop goes together.
    await Promise.resolve();
    while (waiting.length > 0) {
      await writeBatch(waiting.splice(0, SIGNER_LIMITS.eventsPerBatch), { log, take });
    }
    writing = undefined;
  };
  try {
    for await (const message of messages) {
      const published = read(message, log);
      if (published === undefined) continue;
      waiting.push({ message, published });
      writing ??= write();
    }
  } finally {
    await writing;
  }
}

function read(message: JsMsg, log: Log): PublishedRoboticsEvent | undefined {
  try {
    return publishedRoboticsEventSchema.parse(message.json());
  } catch (error) {
    // It would never become readable, and must not keep the others from being sent.
    log.error({ err: error, sequence: message.seq }, "an event of robotics is not of its shape and is left out");
    message.term();
    return undefined;
  }
}

async function writeBatch(
  batch: readonly Arrived[],
  { log, take }: Pick<FollowOptions, "log" | "take">,
): Promise<void> {
  try {
    await take(batch.map(({ published }) => published));
    for (const { message } of batch) message.ack();
  } catch (error) {
    log.warn({ err: error, events: batch.length }, "events could not be written down now and come again");
    for (const { message } of batch) message.nak(SIGNER_LIMITS.eventPauseMs);
  }
}
