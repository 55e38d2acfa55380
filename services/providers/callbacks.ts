/**
 * Callbacks of providers. The first check is the signature over the raw body, before anything is decoded. The second is
 * whether the event is known: a known event gets its recorded answer again. The event's effect comes last. Every signed
 * callback is recorded and answered 200, because a provider would drop the report after an error.
 *
 * Who calls whom: callbacks → callback-recording → asserted-payments → issue-recording → sql. Nothing here calls a task
 * or an issue's handler: a recording returns the task that it has written, and the task runner starts it after the
 * commit.
 */
import { randomBytes } from "node:crypto";
import type * as bus from "../bus/messages/callbacks.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import { SIGNATURE_HEADER } from "../bus/signature-header.ts";
import type { SignedCallback, Verdict } from "./adapters/callback-signature.ts";
import type { CallbackKeys } from "./callback-configs.ts";
import { eventKeyOf, recordCallback, repeatCallback } from "./callback-recording.ts";
import type { ProvidersDeps } from "./deps.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import type { CallbackAnswer, RefusalReason } from "./metrics.ts";
import { findAnswer, insertRefusal } from "./sql/callbacks.ts";

type Answer = ReplyOf<typeof bus.receiveCallback>;
type Sender = Pick<RequestOf<typeof bus.receiveCallback>, "configId" | "address">;

const SIGNATURE_INVALID = refusal(401, "signature_invalid", "The signature does not fit this callback.");
const THROTTLED = refusal(429, "throttled", "Too many callbacks that were refused; try again later.");
const TOO_LARGE = refusal(413, "body_too_large", "The body is too large.");

/**
 * A random secret that is never shown. The service checks a callback against it when the config does not exist or has
 * no live secret. So the check takes as long as that of a wrong signature.
 */
const NO_SECRET = randomBytes(32).toString("base64url");

interface Answered {
  readonly answer: Answer;
  /** For the metrics. */
  readonly as: Exclude<CallbackAnswer, "failed">;
}

export function receiveCallback(deps: ProvidersDeps, request: RequestOf<typeof bus.receiveCallback>): Promise<Answer> {
  return measure(deps, () => check(deps, request));
}

/** Answers a callback that is too large. The gateway has not read its body. */
export function refuseLargeCallback(deps: ProvidersDeps, request: Sender): Promise<Answer> {
  return measure(deps, () => refuseTooLarge(deps, request));
}

async function measure(deps: ProvidersDeps, answering: () => Promise<Answered>): Promise<Answer> {
  const { callbacks, callbackSeconds } = deps.metrics;
  const startedAtMs = performance.now();
  let answeredAs: CallbackAnswer = "failed";
  try {
    const { answer, as } = await answering();
    answeredAs = as;
    return answer;
  } finally {
    callbacks.add({ answer: answeredAs });
    callbackSeconds.observe({ answer: answeredAs }, (performance.now() - startedAtMs) / 1_000);
  }
}

async function check(deps: ProvidersDeps, request: RequestOf<typeof bus.receiveCallback>): Promise<Answered> {
  const body = Buffer.from(request.bodyBase64, "base64");
  if (body.length > PROVIDER_LIMITS.callbackBytes) return await refuseTooLarge(deps, request);
  const callback = { header: request.headers[SIGNATURE_HEADER], body };
  const { configId } = request;
  const isLikelyRight = isSigned(verdictOf(deps, deps.callbackConfigs.lastRead(configId), callback));
  return await inSlot(deps, { configId, isLikelyRight }, () => decide(deps, request, callback));
}

/** `stale` is a right signature too: a repetition gets its recorded answer. */
const isSigned = (verdict: Verdict): boolean => verdict === "valid" || verdict === "stale";

function verdictOf(
  { adapters, bus }: Pick<ProvidersDeps, "adapters" | "bus">,
  keys: CallbackKeys | undefined,
  callback: SignedCallback,
): Verdict {
  const secrets = keys === undefined || keys.secrets.length === 0 ? [NO_SECRET] : keys.secrets;
  return adapters[keys?.kind ?? "emvco_generic"].verify(callback, secrets, bus.clock.nowMs());
}

/**
 * Works on a callback in a slot of its config. Callbacks whose signature is probably wrong have separate slots, so that
 * they do not delay the others. Refuses with `busy` when there is no slot: nothing is recorded, and the provider sends
 * it again.
 */
async function inSlot(
  deps: ProvidersDeps,
  { configId, isLikelyRight }: { readonly configId: number; readonly isLikelyRight: boolean },
  work: () => Promise<Answered>,
): Promise<Answered> {
  const release = isLikelyRight
    ? await deps.callbackSlots.acquire(configId, PROVIDER_LIMITS.callbackWaitMs)
    : deps.suspectCallbackSlots.tryAcquire(configId);
  if (release === undefined) throw new RefusedError({ code: "busy", retryAfterMs: 1_000 });
  try {
    return await work();
  } finally {
    release();
  }
}

async function decide(
  deps: ProvidersDeps,
  request: RequestOf<typeof bus.receiveCallback>,
  callback: SignedCallback,
): Promise<Answered> {
  const { body } = callback;
  // The same reading whether the config exists or not, so that both take equally long.
  const known = await deps.callbackConfigs.read(request.configId);
  const keys = known && { kind: known.config.kind, secrets: known.secrets };
  const verdict = verdictOf(deps, keys, callback);
  if (known === undefined) return await refuse(deps, request, { reason: "config_unknown", isConfigKnown: false });
  if (verdict === "invalid" || verdict === "missing")
    return await refuse(deps, request, { reason: `signature_${verdict}`, isConfigKnown: true });
  const { config } = known;
  const adapter = deps.adapters[config.kind];
  const event = adapter.decode(body);
  const eventKey = eventKeyOf(event, body);
  const received = { config, event, eventKey, body };
  const answered = await findAnswer(deps.database, { configId: config.config_id, eventKey, body });
  // A known event has no second effect, so its age does not matter. The service refuses an old signature over any other
  // event, so that a captured callback opens no issue. A provider that reports money sends it again with a fresh
  // signature.
  if (verdict === "stale" && answered?.isSameBody !== true)
    return await refuse(deps, request, { reason: "timestamp_stale", isConfigKnown: true });
  if (answered !== undefined) return await repeatCallback(deps, answered, received);
  return await recordCallback(deps, received);
}

/** Logged as a warning too, because what the provider reports with it is lost. */
async function refuseTooLarge(deps: ProvidersDeps, request: Sender): Promise<Answered> {
  return await inSlot(deps, { configId: request.configId, isLikelyRight: false }, async () => {
    const isConfigKnown = (await deps.callbackConfigs.read(request.configId)) !== undefined;
    return await refuse(deps, request, { reason: "body_too_large", isConfigKnown });
  });
}

/** The answer is the same whether the config exists or not; only the record differs. */
async function refuse(
  deps: ProvidersDeps,
  { configId, address }: Sender,
  { reason, isConfigKnown }: { readonly reason: RefusalReason; readonly isConfigKnown: boolean },
): Promise<Answered> {
  const { throttledForMs, isRecorded } = await deps.refusals.count({ address, configId, isConfigKnown });
  if (throttledForMs > 0) return { ...THROTTLED, answer: { ...THROTTLED.answer, retryAfterMs: throttledForMs } };
  if (isRecorded) {
    await insertRefusal(deps.database, {
      configId,
      address: address.slice(0, PROVIDER_LIMITS.addressCharacters),
      reason,
    });
    deps.metrics.refusals.add({ reason });
    if (reason === "body_too_large") {
      deps.log.warn({ refusal: reason, configId, isConfigKnown, address }, "a callback is too large");
    }
  }
  return reason === "body_too_large" ? TOO_LARGE : SIGNATURE_INVALID;
}

function refusal(status: number, code: Exclude<Answered["as"], "recorded" | "duplicate">, detail: string): Answered {
  return { answer: { status, body: JSON.stringify({ code, detail }) }, as: code };
}
