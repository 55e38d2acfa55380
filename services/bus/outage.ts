/**
 * Failures of work that each request or station repeats. An outage of NATS, of PostgreSQL or of another service makes all of
 * it fail at once, many times a second. Its reason is known, so its log lines need no stack, and one line a minute for each
 * reason is enough. Any other failure is logged each time, with its stack.
 */
import { JetStreamApiError } from "@nats-io/jetstream";
import { errors } from "nats";
import { faultOf } from "../runtime/fault.ts";
import { LoggedReasons } from "../runtime/repeat.ts";
import { errorCode } from "../runtime/user-error.ts";
import { isNoResponders, RefusedError, UnavailableError } from "./refusals.ts";

/** JetStream has no leader, or the stream has none. */
const NO_JETSTREAM_LEADER: ReadonlySet<number> = new Set([10_008, 10_009, 10_118]);

/** The codes of a connection that cannot be made or is lost. */
export const CONNECTION_CODES: ReadonlySet<unknown> = new Set([
  "database_ended",
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "CONNECT_TIMEOUT",
  "EAI_AGAIN",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ENETUNREACH",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
]);

/** The codes of other errors during an outage: of the bus and of PostgreSQL. */
const OUTAGE_CODES: ReadonlySet<string> = new Set([
  "bus_down",
  "copy_lags",
  "database_deadline",
  "no_copy_answers",
  "no_stream_leader",
  "settlement_not_committed",
  "station_not_restored",
  "unavailable",
  // PostgreSQL can only be read, refuses the log-in, has too many connections, or is starting or stopping.
  "25006",
  "28000",
  "28P01",
  "3D000",
  "53300",
  "57P01",
  "57P02",
  "57P03",
]);

/** What other services answer while they depend on something that is unavailable. */
const OUTAGE_REFUSALS: readonly string[] = ["unavailable", "busy", "storage_low"];

/** The reason in plain words when the error results from an outage; undefined for an unexpected error. */
export function outageReason(error: unknown): string | undefined {
  if (error instanceof errors.TimeoutError) return "the NATS server does not answer in time";
  if (isNoResponders(error)) return "no process answers";
  if (error instanceof errors.ClosedConnectionError) return "the connection to NATS is closed";
  if (error instanceof JetStreamApiError) return NO_JETSTREAM_LEADER.has(error.code) ? error.message : undefined;
  if (error instanceof RefusedError) {
    const { code } = error.refusal;
    return OUTAGE_REFUSALS.includes(code) ? `the called service answers ${code}` : undefined;
  }
  if (error instanceof UnavailableError && isProgramError(error.cause)) return undefined;
  const code = errorCode(error);
  if (!OUTAGE_CODES.has(code) && !CONNECTION_CODES.has(code)) return undefined;
  const fault = faultOf(error);
  if (fault !== undefined) return `${fault.because} (${fault.code})`;
  return error instanceof Error ? error.message : code;
}

/** An answer that is no JSON, or a subject that the server denies. */
function isProgramError(cause: unknown): boolean {
  return cause instanceof SyntaxError || cause instanceof errors.PermissionViolationError;
}

const failuresOfLogs = new WeakMap<WarnLog, Map<string, Failures>>();

interface WarnLog {
  warn(fields: object, message: string): void;
}

/** The failures of work that has nothing in common but the log and the message. */
export function failuresOf(log: WarnLog, message: string): Failures {
  const known = failuresOfLogs.get(log) ?? new Map<string, Failures>();
  failuresOfLogs.set(log, known);
  const failures = known.get(message) ?? new Failures((...line) => log.warn(...line), message);
  known.set(message, failures);
  return failures;
}

/** What `Failures` writes to. */
type Write = (fields: object, message: string) => void;

/** The log lines about failures of one kind of work. */
export class Failures {
  readonly #write: Write;
  readonly #message: string;
  readonly #logged = new LoggedReasons();

  constructor(write: Write, message: string) {
    this.#write = write;
    this.#message = message;
  }

  /** Of an outage, `facts` are those of the first failure in a minute. `next` is what a person can do about it. */
  failed(error: unknown, facts: object): void {
    const reason = outageReason(error);
    if (reason === undefined) this.#write({ err: error, ...facts }, this.#message);
    else if (this.#logged.isDue(reason)) this.#write({ reason, next: faultOf(error)?.next, ...facts }, this.#message);
  }
}
