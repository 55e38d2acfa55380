/**
 * Publishes once per turn of the event loop. The client writes to its socket at the next microtask, so under load each
 * message needs a separate system call, which costs more than all the rest of a command. Here all messages of one turn
 * go out in one write. A single message waits only for the end of its turn, about ten microseconds.
 */
import type { NatsConnection, PublishOptions } from "nats";

interface Waiting {
  readonly subject: string;
  readonly body: string | Uint8Array;
  readonly options: PublishOptions | undefined;
  /** Called when the connection has refused the message: nothing was sent. */
  readonly onRefused: ((cause: unknown) => void) | undefined;
}

class TurnPublisher {
  readonly #nc: NatsConnection;
  #waiting: Waiting[] = [];

  constructor(nc: NatsConnection) {
    this.#nc = nc;
  }

  /**
   * Queues one message for the end of this turn. The queue needs no bound: each turn empties it, and the answers and
   * appends of one turn belong to requests that have limits (`BUS_LIMITS.requestsInFlight`, the mailboxes' lengths).
   */
  publish(
    subject: string,
    body: string | Uint8Array,
    options?: PublishOptions,
    onRefused?: (cause: unknown) => void,
  ): void {
    this.#waiting.push({ subject, body, options, onRefused });
    if (this.#waiting.length === 1) setImmediate(() => this.flush());
  }

  /** Publishes all queued messages now, in order. Returns how many there were. */
  flush(): number {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { subject, body, options, onRefused } of waiting) {
      try {
        this.#nc.publish(subject, body, options);
      } catch (cause) {
        onRefused?.(cause);
      }
    }
    return waiting.length;
  }
}

const publishers = new WeakMap<NatsConnection, TurnPublisher>();

/** The publisher of a connection. All its users share it, so that their messages go out in one write. */
export function turnPublisher(nc: NatsConnection): TurnPublisher {
  const known = publishers.get(nc);
  if (known !== undefined) return known;
  const made = new TurnPublisher(nc);
  publishers.set(nc, made);
  return made;
}
