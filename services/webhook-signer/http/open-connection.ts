/**
 * Opens a connection to one of a target's checked addresses: TCP, a check of the address that answered, and TLS, with
 * deadlines.
 */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type SecureContext, type TLSSocket } from "node:tls";
import { TARGET_LIMITS } from "../limits.ts";
import { AttemptFailure } from "./send-result.ts";

interface ConnectionTarget {
  /** The host as the certificate has it: a name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
  /** At least one; all of them were checked. */
  readonly addresses: readonly string[];
}

interface ConnectionSettings {
  /** The trusted authorities, and the oldest TLS version that is allowed. */
  readonly secureContext: SecureContext;
  /** How long TCP and TLS together may take. */
  readonly connectMs: number;
  /** Whether the host may be connected to at this address. */
  readonly allows: (host: string, address: string) => boolean;
}

/** The finished steps, for the attempt's record. A failed connection leaves the later ones null. */
export interface ConnectionTimes {
  address: string | null;
  connectMs: number | null;
  tlsMs: number | null;
}

/** Writes its steps into `times`. Throws `AttemptFailure`, or the signal's reason when it aborts. */
export async function openConnection(
  target: ConnectionTarget,
  settings: ConnectionSettings,
  times: ConnectionTimes,
  signal: AbortSignal,
): Promise<Socket> {
  const deadline = startDeadline(settings.connectMs, [signal]);
  try {
    const startedAt = performance.now();
    const tcp = await connectFirst(target, times, deadline.signal);
    // The operating system reports which address it has reached. Nothing has been written to the connection yet.
    const { remoteAddress } = tcp;
    if (remoteAddress === undefined || !settings.allows(target.host, remoteAddress)) {
      tcp.destroy();
      // The owner must not learn which address answered instead.
      times.address = null;
      throw new AttemptFailure(remoteAddress === undefined ? "connect_failed" : "target_refused");
    }
    times.address = remoteAddress;
    const connectedAt = performance.now();
    times.connectMs = connectedAt - startedAt;
    if (!target.isSecure) return tcp;
    const secured = await secure(tcp, target.host, settings.secureContext, deadline.signal);
    times.tlsMs = performance.now() - connectedAt;
    return secured;
  } finally {
    deadline.clear();
  }
}

/**
 * Tries a few addresses in turn. Abandons each but the last after `addressMs`, because a dead address gives no answer.
 */
async function connectFirst(
  { addresses, port }: ConnectionTarget,
  times: ConnectionTimes,
  signal: AbortSignal,
): Promise<Socket> {
  const tried = addresses.slice(0, TARGET_LIMITS.addressesTried);
  for (const [at, address] of tried.entries()) {
    const isLast = at === tried.length - 1;
    // All addresses were checked, so the record may name one that does not answer.
    times.address = address;
    const addressDeadline = isLast ? undefined : startDeadline(TARGET_LIMITS.addressMs, [signal]);
    try {
      return await connectTo(address, port, addressDeadline?.signal ?? signal);
    } catch (cause) {
      if (isLast || signal.aborted) throw cause;
    } finally {
      addressDeadline?.clear();
    }
  }
  throw new AttemptFailure("connect_failed");
}

/** Connects to the checked address and not to the host's name, so that no name is resolved again. */
async function connectTo(address: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = connectTcp({ host: address, port, noDelay: true, keepAlive: true });
  await settled(socket, "connect", "connect_failed", signal);
  return socket;
}

/** Sets every TLS option explicitly that an environment variable or a command line could weaken. */
async function secure(
  tcp: Socket,
  host: string,
  secureContext: SecureContext,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const socket = connectTls({
    socket: tcp,
    // The name that the certificate must have. Only a name may be sent as server name (RFC 6066, 3).
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    secureContext,
    rejectUnauthorized: true,
    ALPNProtocols: ["http/1.1"],
  });
  await settled(socket, "secureConnect", "tls_failed", signal);
  return socket;
}

/** Waits for an event of a socket that is being opened; in every other case the socket is destroyed. */
async function settled(
  socket: Socket,
  event: "connect" | "secureConnect",
  error: "connect_failed" | "tls_failed",
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const fail = (cause?: unknown): void => reject(new AttemptFailure(error, { cause }));
  const abort = (): void => reject(signal.reason);
  const closed = (): void => fail();
  socket.once(event, resolve).once("close", closed);
  // This listener stays: a socket's error without a listener would end the process.
  socket.on("error", fail);
  signal.addEventListener("abort", abort, { once: true });
  try {
    signal.throwIfAborted();
    await promise;
  } catch (cause) {
    socket.destroy();
    throw cause;
  } finally {
    socket.off("close", closed).off(event, resolve);
    signal.removeEventListener("abort", abort);
  }
}

export interface Deadline {
  /** Aborts with `reason` at the end of the time, and with an outer signal's reason when that aborts. */
  readonly signal: AbortSignal;
  /** Removes the timer and the listeners. The caller calls it in every case. */
  clear(): void;
}

/**
 * Replaces `AbortSignal.any` and `AbortSignal.timeout`. These leave a listener on an outer signal that lives as long as
 * the process, or a timer that is no longer needed.
 */
export function startDeadline(
  afterMs: number,
  outer: readonly AbortSignal[],
  reason: () => Error = () => new AttemptFailure("timed_out"),
): Deadline {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(reason()), afterMs);
  const stop = (event: Event): void => controller.abort((event.target as AbortSignal).reason);
  for (const signal of outer) {
    if (signal.aborted) controller.abort(signal.reason);
    else signal.addEventListener("abort", stop, { once: true });
  }
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer);
      for (const signal of outer) signal.removeEventListener("abort", stop);
    },
  };
}
