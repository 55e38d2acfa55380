/** One attempt: signs the body, sends it through the guard, and makes the outcome. */
import { retryInMs } from "../../../machines/webhook-delivery.ts";
import { currentRequestId, type Log } from "../../runtime/log.ts";
import type { Clock } from "../clock.ts";
import { EndedBeforeSending, NOT_SENT, type Sender, type SendResult } from "../http/send-result.ts";
import { SIGNATURE_HEADER, signatureHeader } from "../signing.ts";
import type { OutcomeRow } from "../sql/outcomes.ts";
import type { DueRow } from "../sql/owners.ts";
import type { LoopbackRule } from "../target/check-url.ts";

export interface AttemptDeps {
  readonly sender: Pick<Sender, "send">;
  readonly log: Pick<Log, "error">;
  readonly clock: Pick<Clock, "nowMs">;
  /** Whether endpoints of `test` consumers may be on a loopback address, as the operator has set it. */
  readonly allowLoopback: boolean;
  readonly random: () => number;
}

interface Target {
  readonly url: string;
  readonly mode: "test" | "live";
  readonly secrets: readonly string[];
}

/** What is sent, and under which conditions it may be sent. */
interface Message {
  readonly body: string;
  readonly signal: AbortSignal;
  /** For an offer: when it expires, by `performance.now()`; nothing of it is sent from then on. */
  readonly endsAtMs?: number | null;
  /** Whether this process may still send it; called just before its first byte. */
  readonly maySend?: (() => boolean) | undefined;
  /** Of the request that caused the delivery, where it is not the current one. */
  readonly requestId?: string | null;
}

/**
 * Sends a body once. Undefined when there was no attempt: the signal aborted it, or before its first byte the delivery
 * ended or went to another process. Every other failure is the attempt's result.
 */
export async function sendOnce(
  deps: Pick<AttemptDeps, "sender" | "allowLoopback" | "log" | "clock">,
  target: Target,
  { body, signal, endsAtMs = null, maySend, requestId = null }: Message,
): Promise<SendResult | undefined> {
  if (target.secrets.length === 0) return { ...NOT_SENT, error: "secret_unreadable" };
  const signature = signatureHeader(target.secrets, { body, nowMs: deps.clock.nowMs() });
  try {
    return await deps.sender.send({
      url: target.url,
      headers: { "Content-Type": "application/json", [SIGNATURE_HEADER]: signature },
      body,
      loopback: loopbackRule(deps, target.mode),
      signal,
      endsAtMs,
      maySend,
    });
  } catch (error) {
    if (signal.aborted || error instanceof EndedBeforeSending) return undefined;
    const facts = { err: error, requestId: requestId ?? currentRequestId() };
    deps.log.error(facts, "a delivery could not be sent because of a fault in this service");
    return { ...NOT_SENT, error: "internal_error" };
  }
}

/** Only requests to `test` consumers may go to this machine itself, and only where the operator allows it. */
export function loopbackRule(
  { allowLoopback }: Pick<AttemptDeps, "allowLoopback">,
  mode: "test" | "live",
): LoopbackRule {
  return allowLoopback && mode === "test" ? "allowed" : "refused";
}

/** When an attempt begins, in microseconds since the epoch, which is also its key. */
export function attemptIdAt(nowMs: number): number {
  return Math.floor(nowMs * 1_000);
}

/** The delivery as it was when the attempt began. */
type Attempted = Pick<DueRow, "delivery_id" | "attempts" | "manual_attempts" | "asked" | "manual_of">;

/** The outcome of an attempt. `attempts` of the delivery counts those that ended before this attempt began. */
export function outcomeOf(
  { delivery_id, attempts, manual_attempts, asked, manual_of }: Attempted,
  made: { readonly attemptId: number; readonly result: SendResult; readonly random: number },
): OutcomeRow {
  const { attemptId: attempt_id, result, random } = made;
  const planned = attempts - manual_attempts + 1;
  const { retryAfterMs } = result;
  return {
    delivery_id,
    attempt_id,
    attempt: attempts + 1,
    asked,
    retry_in_ms: result.error === null ? null : retryInMs({ attempts: planned, retryAfterMs, random }),
    address: result.address,
    dns_ms: result.dnsMs,
    connect_ms: result.connectMs,
    tls_ms: result.tlsMs,
    first_byte_ms: result.firstByteMs,
    total_ms: result.totalMs,
    http_status: result.status,
    error: result.error,
    response_body: result.responseBody,
    is_truncated: result.truncated,
    is_manual: manual_of !== null,
  };
}
