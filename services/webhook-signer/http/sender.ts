/**
 * Sends webhooks. Registrations, tests and deliveries all pass the guard of this file before they send anything. The
 * guard checks the URL, then every address of the host, then the address that was connected.
 */
import { isIP } from "node:net";
import type { AttemptError } from "../../bus/messages/webhook-deliveries.ts";
import { TARGET_LIMITS } from "../limits.ts";
import { checkedNameServers, ownNetworkBlocks, trustedRoots } from "../settings.ts";
import { createOwnAddresses, isLoopbackAddress, isPublicAddress, isWithin } from "../target/address-rule.ts";
import { checkTargetUrl, hostOf, isLoopbackHost } from "../target/check-url.ts";
import { type ResolverSettings, resolveTarget } from "../target/resolve-target.ts";
import { type Connection, createConnection, createIdleConnections } from "./connections.ts";
import { type ConnectionTimes, type Deadline, openConnection, startDeadline } from "./open-connection.ts";
import { type Answer, answerText, noAnswer, type Post, post, retryAfterMs } from "./post.ts";
import { AttemptFailure, EndedBeforeSending, NOT_SENT, type Sender, type SendResult } from "./send-result.ts";

export interface SenderSettings {
  /** Name servers as `address` or `address:port`, IPv6 in brackets; the system's when left out. */
  readonly dnsServers?: readonly string[] | undefined;
  /** A PEM file with authorities that are trusted beside those of Node. */
  readonly caFile?: string | undefined;
  /** Public addresses, or blocks of them, that lead to this service or its network, as behind a load balancer. */
  readonly ownNetworks?: readonly string[] | undefined;
  /** The time for a Retry-After that names a date; this machine's when left out. */
  readonly nowMs?: (() => number) | undefined;
  /** Shorter times than those of `TARGET_LIMITS`. */
  readonly times?: Partial<Pick<typeof TARGET_LIMITS, SettableTime>> | undefined;
}

type SettableTime = "attemptMs" | "dnsMs" | "connectMs" | "connectionMs" | "idleMs" | "ownAddressesMs";

/** The request of one attempt. */
interface Exchange extends Post {
  /** From then on no byte of the request is written; null for a request without an end. */
  readonly endsAtMs: number | null;
  readonly maySend: (() => boolean) | undefined;
}

/** What is known of an attempt so far. */
interface Trace extends ConnectionTimes {
  dnsMs: number | null;
  answer: Answer;
}

/** The whole result for a refused target: more would reveal what is at an internal address. */
const REFUSED: SendResult = { ...NOT_SENT, error: "target_refused" };

/** Throws UserError `invalid_setting` for a file, name server or network that cannot be read. */
export function createSender({ dnsServers, caFile, ownNetworks, nowMs, times }: SenderSettings): Sender {
  const { attemptMs, dnsMs, connectMs, connectionMs, idleMs, ownAddressesMs } = { ...TARGET_LIMITS, ...times };
  const networks = ownNetworkBlocks(ownNetworks ?? []);
  const isOwn = createOwnAddresses(ownAddressesMs);
  const { rememberedTargets } = TARGET_LIMITS;
  const isLocalHost = remember(rememberedTargets, isLoopbackHost);
  const isLocal = remember(rememberedTargets, isLoopbackAddress);
  const isOutside = remember(rememberedTargets, (text) => isPublicAddress(text) && !isWithin(networks, text));
  const allows: ResolverSettings["allows"] = (host, address) =>
    isLocalHost(host) ? isLocal(address) : isOutside(address) && !isOwn(address);
  const checkUrl = {
    allowed: remember(rememberedTargets, (raw) => checkTargetUrl(raw, { loopback: "allowed" })),
    refused: remember(rememberedTargets, (raw) => checkTargetUrl(raw, { loopback: "refused" })),
  };
  const resolver: ResolverSettings = { servers: checkedNameServers(dnsServers ?? []), dnsMs, allows };
  const connections = { secureContext: trustedRoots(caFile), connectMs, allows };
  const idle = createIdleConnections({ connectionMs });
  const closing = new AbortController();
  const underWay = new Set<Promise<SendResult>>();

  const startAttempt = (signal: AbortSignal | undefined): Deadline =>
    startDeadline(attemptMs, signal === undefined ? [closing.signal] : [closing.signal, signal]);

  const open = async (url: URL, trace: Trace, signal: AbortSignal): Promise<Connection> => {
    const host = hostOf(url);
    const startedAt = performance.now();
    const resolution = await resolveTarget(host, resolver, signal);
    if (isLookedUp(host)) trace.dnsMs = performance.now() - startedAt;
    if (!resolution.ok) throw new AttemptFailure(resolution.error);
    const isSecure = url.protocol === "https:";
    const port = url.port === "" ? (isSecure ? 443 : 80) : Number(url.port);
    const target = { host, port, isSecure, addresses: resolution.addresses };
    const socket = await openConnection(target, connections, trace, signal);
    return createConnection(url.origin, socket, { idleMs, onClosed: (closed) => idle.remove(closed) });
  };

  /** An idle connection to an address that is still allowed, if there is one. */
  const takeIdle = (url: URL, trace: Trace): Connection | undefined => {
    const connection = idle.take(url.origin);
    if (connection === undefined) return undefined;
    if (connection.address !== null && allows(hostOf(url), connection.address)) {
      trace.address = connection.address;
      return connection;
    }
    connection.destroy();
    return undefined;
  };

  /** Opens a connection, which takes seconds when a target is slow. Stops waiting when the delivery ends meanwhile. */
  const openUntil = async (
    url: URL,
    { endsAtMs }: Exchange,
    trace: Trace,
    signal: AbortSignal,
  ): Promise<Connection> => {
    const leftMs = endsAtMs === null ? attemptMs : endsAtMs - performance.now();
    if (leftMs >= attemptMs) return await open(url, trace, signal);
    if (leftMs <= 0) throw new EndedBeforeSending();
    const end = startDeadline(leftMs, [signal], () => new EndedBeforeSending());
    try {
      return await open(url, trace, end.signal);
    } finally {
      end.clear();
    }
  };

  /** The last check of time and permission is here: the request is written in the same turn of the event loop. */
  const postOn = async (connection: Connection, what: Exchange, trace: Trace, signal: AbortSignal): Promise<void> => {
    const hasEnded = what.endsAtMs !== null && performance.now() >= what.endsAtMs;
    if (hasEnded || what.maySend?.() === false) {
      connection.destroy();
      throw new EndedBeforeSending();
    }
    await post(connection, what, trace.answer, signal);
    idle.put(connection);
  };

  const exchange = async (url: URL, what: Exchange, trace: Trace, signal: AbortSignal): Promise<void> => {
    const reused = takeIdle(url, trace);
    const { address } = trace;
    let closed: AttemptFailure | undefined;
    if (reused !== undefined) {
      const bytesBefore = reused.bytesRead;
      try {
        return await postOn(reused, what, trace, signal);
      } catch (cause) {
        // The target was closing this idle connection, which is no failure. The request is sent again at once on a new, checked
        // connection; if it arrives twice, the target recognizes the delivery by its id.
        const isSilent = reused.bytesRead === bytesBefore && trace.answer.status === null;
        if (!isSilent || !(cause instanceof AttemptFailure) || cause.error !== "connection_closed") throw cause;
        closed = cause;
        trace.address = null;
      }
    }
    try {
      await postOn(await openUntil(url, what, trace, signal), what, trace, signal);
    } catch (cause) {
      if (closed === undefined || !(cause instanceof EndedBeforeSending)) throw cause;
      // The request was written once, and its effect at the target is unknown: that counts as an attempt.
      trace.address ??= address;
      throw closed;
    }
  };

  const sendTo = async (url: URL, what: Exchange, signal: AbortSignal | undefined): Promise<SendResult> => {
    const startedAt = performance.now();
    const trace: Trace = { address: null, dnsMs: null, connectMs: null, tlsMs: null, answer: noAnswer() };
    const deadline = startAttempt(signal);
    let error: AttemptError | null;
    try {
      await exchange(url, what, trace, deadline.signal);
      error = errorOfStatus(trace.answer.status);
    } catch (cause) {
      if (!(cause instanceof AttemptFailure)) throw cause;
      ({ error } = cause);
    } finally {
      deadline.clear();
    }
    return error === "target_refused"
      ? REFUSED
      : resultOf(trace, error, { totalMs: performance.now() - startedAt, nowMs: (nowMs ?? Date.now)() });
  };

  return {
    async send({ url: raw, headers, body, loopback, signal, endsAtMs = null, maySend }) {
      const checked = checkUrl[loopback](raw);
      if (!checked.ok) return REFUSED;
      const { url } = checked;
      const what: Exchange = { path: `${url.pathname}${url.search}`, headers, body, endsAtMs, maySend };
      const sending = sendTo(url, what, signal);
      underWay.add(sending);
      try {
        return await sending;
      } finally {
        underWay.delete(sending);
      }
    },
    async check(raw, { loopback, signal }) {
      const checked = checkTargetUrl(raw, { loopback });
      if (!checked.ok) return { ...checked, error: "target_refused" };
      const deadline = startAttempt(signal);
      try {
        const resolution = await resolveTarget(hostOf(checked.url), resolver, deadline.signal);
        return resolution.ok ? checked : resolution;
      } finally {
        deadline.clear();
      }
    },
    async close() {
      closing.abort(new Error("The sender is closed."));
      idle.close();
      await Promise.allSettled(underWay);
    },
  };
}

function resultOf(
  { answer, ...times }: Trace,
  error: AttemptError | null,
  { totalMs, nowMs }: { readonly totalMs: number; readonly nowMs: number },
): SendResult {
  return {
    error,
    address: times.address,
    dnsMs: rounded(times.dnsMs),
    connectMs: rounded(times.connectMs),
    tlsMs: rounded(times.tlsMs),
    firstByteMs: rounded(answer.firstByteMs),
    totalMs: rounded(totalMs),
    status: answer.status,
    responseBody: answer.isEncoded ? "" : answerText(Buffer.concat(answer.chunks)),
    truncated: answer.truncated,
    retryAfterMs: retryAfterMs(answer.retryAfter, nowMs),
  };
}

function errorOfStatus(status: number | null): AttemptError | null {
  if (status === null) return "answer_invalid";
  if (status >= 200 && status < 300) return null;
  return status >= 300 && status < 400 ? "redirected" : "status_not_success";
}

/** Hundredths of a millisecond; more is noise. */
const rounded = (ms: number | null): number | null => (ms === null ? null : Math.round(ms * 100) / 100);

/** An address and this machine's own name need no name server. */
const isLookedUp = (host: string): boolean => isIP(host) === 0 && !isLoopbackHost(host);

/**
 * Calls `answer` once for each text. Forgets all texts when it has `most`, so that many targets cost time and not
 * memory.
 */
function remember<T>(most: number, answer: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    if (known.size >= most) known.clear();
    const answered = answer(text);
    known.set(text, answered);
    return answered;
  };
}
