/** What is sent, and what comes of one attempt as its record has it. */
import type { AttemptError } from "../../bus/messages/webhook-deliveries.ts";
import type { LoopbackRule, TargetRefusal } from "../target/check-url.ts";

export interface SendRequest {
  readonly url: string;
  /** Beside these go host, length, user agent and what says that no compressed answer is wanted. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent byte for byte. */
  readonly body: string | Uint8Array;
  readonly loopback: LoopbackRule;
  /** Aborted when the service stops: what the target did is unknown then. */
  readonly signal?: AbortSignal | undefined;
  /** When there is no use in it any more, by `performance.now()`: no byte of the request is written from then on. */
  readonly endsAtMs?: number | null | undefined;
  /** Asked in the moment before the first byte is written, because opening a connection takes time; always when left out. */
  readonly maySend?: (() => boolean) | undefined;
}

/** What was to be sent has ended, or is no longer ours to send, before the first byte of its request; the target was not asked. */
export class EndedBeforeSending extends Error {
  constructor() {
    super("What was to be sent has ended, or is another's to send, before it could be.");
    this.name = "EndedBeforeSending";
  }
}

export interface SendResult {
  /** Null exactly when the target answered 2xx, and what is read of the answer came in time. */
  readonly error: AttemptError | null;
  /** The address that was connected, or tried last. For a refused target this and all below is null or empty, against port scans. */
  readonly address: string | null;
  /** Milliseconds of each step, also of a failed look-up. Null for other unfinished steps, and for steps that a reused connection saves. */
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly tlsMs: number | null;
  /** From the request to the answer's head. */
  readonly firstByteMs: number | null;
  readonly totalMs: number | null;
  readonly status: number | null;
  /** The beginning of the answer as text that PostgreSQL can hold, at most `excerptBytes`. */
  readonly responseBody: string;
  /** Whether the answer was longer than what is read of it. */
  readonly truncated: boolean;
  /** What the target asked for by Retry-After, bounded; null where it asked for nothing that can be understood. */
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

export type TargetCheck =
  | { readonly ok: true; readonly url: URL }
  | { readonly ok: false; readonly error: "target_refused"; readonly reason: TargetRefusal }
  | { readonly ok: false; readonly error: "dns_failed" };

export interface Sender {
  /**
   * One POST. Rejects with the signal's reason when it aborts, when the sender is closed meanwhile, and with
   * `EndedBeforeSending` when `endsAtMs` comes before the first byte of the request, or `maySend` says no to it.
   */
  send(request: SendRequest): Promise<SendResult>;
  /** For registration: checks the URL and the addresses of its host with the guard of `send`, without a connection. */
  check(
    url: string,
    options: { readonly loopback: LoopbackRule; readonly signal?: AbortSignal | undefined },
  ): Promise<TargetCheck>;
  /** Ends all connections. What is under way rejects, because it is unknown what the target did. */
  close(): Promise<void>;
}

/** The cause is for a debugger's eyes; nothing of it goes into a record, because it may reveal our network. */
export class AttemptFailure extends Error {
  readonly error: AttemptError;

  constructor(error: AttemptError, options?: ErrorOptions) {
    super(`The attempt failed: ${error}.`, options);
    this.name = "AttemptFailure";
    this.error = error;
  }
}
