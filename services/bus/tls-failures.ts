/** Why a server cannot be reached over TLS. The client itself reports a time-out, or nothing. */
import { type ConnectionOptions, connect, errors } from "nats";
import { faultOf } from "../runtime/fault.ts";
import { BUS_LIMITS } from "./limits.ts";
import { unreachableBus } from "./nats-server.ts";

interface Log {
  warn(fields: object, message: string): void;
}
type Options = ConnectionOptions & { readonly servers: string[] };

/**
 * Finds out why a TLS connection fails. A server refuses the certificate of the process after the TLS handshake. The
 * client then reports a time-out, unless it makes only one attempt. A connection reset may hide the server's reason, so
 * this makes several such attempts. Returns `cause` when it finds no other one.
 */
export async function explainTimeout(options: Options, cause: unknown): Promise<unknown> {
  if (options.tls === undefined || !(cause instanceof errors.TimeoutError)) return cause;
  let last: unknown = cause;
  for (let dial = 0; dial < BUS_LIMITS.lastDials; dial += 1) {
    try {
      const nc = await connect({ ...options, reconnect: false, timeout: BUS_LIMITS.lastDialMs });
      await nc.close();
      return cause;
    } catch (error) {
      last = error;
    }
    if (faultOf(last)?.code !== "ECONNRESET") return last;
  }
  return Object.assign(new Error("The server ends the connection after TLS.", { cause: last }), {
    code: "nats_tls_ended",
  });
}

/** Logs once for each outage why the connection does not come back over TLS, for example because a certificate has expired. */
export class TlsOutage {
  readonly #options: Options;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: Options, log: Log) {
    this.#options = options;
    this.#log = log;
  }

  begin(): void {
    if (this.#options.tls === undefined) return;
    this.#timer ??= setTimeout(() => void this.#explain(), BUS_LIMITS.explainOutageMs);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #explain(): Promise<void> {
    const timer = this.#timer;
    const unknown = new errors.TimeoutError();
    const cause = await explainTimeout(this.#options, unknown);
    if (cause === unknown || timer !== this.#timer) return;
    const { code, message } = unreachableBus(this.#options.servers, cause);
    this.#log.warn({ errorCode: code }, message);
  }
}
