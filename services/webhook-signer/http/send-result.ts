/** The request of one attempt, and its result as the record has it. */
import type { AttemptError } from "../../bus/messages/webhook-deliveries.ts";
import type { LoopbackRule, TargetRefusal } from "../target/check-url.ts";

interface SendRequest {
  readonly url: string;
  /** The sender adds host, length, user agent, and the header that asks for an uncompressed answer. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent byte for byte. */
  readonly body: string | Uint8Array;
  readonly loopback: LoopbackRule;
  /** Aborted when the service stops: the effect at the target is then unknown. */
  readonly signal?: AbortSignal | undefined;
  /** When the request is no longer of use, by `performance.now()`: from then on no byte of it is written. */
  readonly endsAtMs?: number | null | undefined;
  /**
   * Called just before the first byte is written, because opening a connection takes time. Left out: it may always be
   * sent.
   */
  readonly maySend?: (() => boolean) | undefined;
}

/**
 * The delivery has ended, or another process sends it, before the first byte of its request: the target got nothing.
 */
export class EndedBeforeSending extends Error {
  constructor() {
    super("The delivery has ended, or another process sends it, before its first byte was written.");
    this.name = "EndedBeforeSending";
  }
}

export interface SendResult {
  /** Null exactly when the target answered 2xx, and the part of the answer that is read came in time. */
  readonly error: AttemptError | null;
  /**
   * The address that was connected, or tried last. For a refused target this and every field below is null or empty, so
   * that webhooks cannot scan ports.
   */
  readonly address: string | null;
  /**
   * Milliseconds of each step, also of a failed look-up. Null for other unfinished steps, and for steps that a reused
   * connection skips.
   */
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly tlsMs: number | null;
  /** From the request to the answer's head. */
  readonly firstByteMs: number | null;
  readonly totalMs: number | null;
  readonly status: number | null;
  /** The beginning of the answer as text that PostgreSQL can hold, at most `excerptBytes`. */
  readonly responseBody: string;
  /** Whether the answer was longer than the part that is read. */
  readonly truncated: boolean;
  /** How long the target asked to wait by Retry-After, limited. Null when the header is missing or invalid. */
  readonly retryAfterMs: number | null;
}

/** The result of a request that was not sent, apart from its error. */
export const NOT_SENT: Omit<SendResult, "error"> = {
  address: null,
  dnsMs: null,
  connectMs: null,
  tlsMs: null,
  firstByteMs: null,
  totalMs: null,
  status: null,
  responseBody: "",
  truncated: false,
  retryAfterMs: null,
};

type TargetCheck =
  | { readonly ok: true; readonly url: URL }
  | { readonly ok: false; readonly error: "target_refused"; readonly reason: TargetRefusal }
  | { readonly ok: false; readonly error: "dns_failed" };

export interface Sender {
  /**
   * Sends one POST. Rejects with the signal's reason when it aborts, or when the sender is closed meanwhile. Rejects
   * with `EndedBeforeSending` when `endsAtMs` comes before the first byte of the request, or `maySend` returns false.
   */
  send(request: SendRequest): Promise<SendResult>;
  /** For registration: checks the URL and the addresses of its host with the guard of `send`, without a connection. */
  check(
    url: string,
    options: { readonly loopback: LoopbackRule; readonly signal?: AbortSignal | undefined },
  ): Promise<TargetCheck>;
  /** Ends all connections. Requests under way reject, because their effect at the target is unknown. */
  close(): Promise<void>;
}

/** The cause is for debugging only. It never goes into a record, because it may reveal the service's network. */
export class AttemptFailure extends Error {
  readonly error: AttemptError;

  constructor(error: AttemptError, options?: ErrorOptions) {
    super(`The attempt failed: ${error}.`, options);
    this.name = "AttemptFailure";
    this.error = error;
  }
}
