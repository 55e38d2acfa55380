/**
 * Follows the stream of events by one durable consumer, which all processes share. While one batch is being written the
 * next one gathers; an event is acknowledged when it is written, so a process that dies leaves it to the others.
 */
import { AckPolicy, type ConsumerMessages, type JsMsg } from "@nats-io/jetstream";
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

export async function followEvents({ bus, log, take }: FollowOptions): Promise<EventFollower> {
  await bus.jsm.consumers.add(ROBOTICS_EVENTS.name, {
    durable_name: DURABLE,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(SIGNER_LIMITS.ackWaitMs),
    max_ack_pending: SIGNER_LIMITS.eventsPerBatch * 4,
  });
  const consumer = await bus.js.consumers.get(ROBOTICS_EVENTS.name, DURABLE);
  const messages = await consumer.consume({ max_messages: SIGNER_LIMITS.eventsPerBatch });
  const following = follow(messages, { log, take });
  return {
    async stop() {
      await messages.close();
      await following;
    },
  };
}

async function follow(messages: ConsumerMessages, { log, take }: Pick<FollowOptions, "log" | "take">): Promise<void> {
  let waiting: Arrived[] = [];
  let writing: Promise<void> | undefined;
  const write = async (): Promise<void> => {
    // What has arrived in the same turn of the event loop goes together.
    await Promise.resolve();
    while (waiting.length > 0) {
      const batch = waiting.splice(0, SIGNER_LIMITS.eventsPerBatch);
      await writeBatch(batch, { log, take });
    }
    writing = undefined;
  };
  for await (const message of messages) {
    const published = read(message, log);
    if (published === undefined) continue;
    waiting.push({ message, published });
    writing ??= write();
  }
  await writing;
  waiting = [];
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
