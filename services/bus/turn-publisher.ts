/**
 * Publishes once per turn of the event loop. The client writes to its socket at the next microtask, so under load each
 * message costs a system call of its own, which is more than everything else a command costs; messages that become ready
 * in the same turn go out in one write here. A lone message waits for the end of its turn only, some ten microseconds.
 */
import type { NatsConnection, PublishOptions } from "nats";

interface Waiting {
  readonly subject: string;
  readonly body: string | Uint8Array;
  readonly options: PublishOptions | undefined;
  /** The connection refused it: nothing was sent. */
  readonly onRefused: ((cause: unknown) => void) | undefined;
}

class TurnPublisher {
  readonly #nc: NatsConnection;
  #waiting: Waiting[] = [];

  constructor(nc: NatsConnection) {
    this.#nc = nc;
  }

  /**
   * Queues one message for the end of this turn. The queue needs no bound of its own: it is emptied each turn, and what
   * becomes ready within one turn are answers and appends, each of a request that was counted against a limit before
   * (`BUS_LIMITS.requestsInFlight`, the mailboxes' lengths).
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

  /** Publishes at once what waits for the end of the turn, in the order in which it came; returns how much that was. */
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

/** The publisher of a connection: one for all its users, or their writes would not be joined. */
export function turnPublisher(nc: NatsConnection): TurnPublisher {
  const known = publishers.get(nc);
  if (known !== undefined) return known;
  const made = new TurnPublisher(nc);
  publishers.set(nc, made);
  return made;
}
