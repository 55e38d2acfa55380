/** The error for a message to a stream without a leader. The JetStream client itself reports that JetStream is not enabled. */
import type { JetStreamClient } from "@nats-io/jetstream";
import { isNoResponders } from "./refusals.ts";

/** No server accepts messages for a stream: its servers elect or do not reach each other, or the stream does not exist. */
class NoLeaderError extends Error {
  readonly code = "no_stream_leader";
  constructor(subject: string, cause: unknown) {
    // The rest of a subject may be the hash of a secret.
    super(`No server takes messages at ${subject.split(".").slice(0, 2).join(".")} now.`, { cause });
    this.name = "NoLeaderError";
  }
}

/** The same client, whose `publish` throws NoLeaderError. */
export function withLeaderErrors(js: JetStreamClient): JetStreamClient {
  const publish = js.publish.bind(js);
  js.publish = async (subject, ...content) => {
    try {
      return await publish(subject, ...content);
    } catch (error) {
      if (error instanceof Error && isNoResponders(error.cause)) throw new NoLeaderError(subject, error.cause);
      throw error;
    }
  };
  return js;
}
