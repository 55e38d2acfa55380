/**
 * One callback. The order of the checks: the signature over the raw body first, before anything is decoded; then whether
 * the event is known, and a known one gets the recorded answer whatever has happened since; then its effect. The record,
 * the answer and the effect are one transaction.
 */
import { createHash } from "node:crypto";
import type { receiveCallback } from "../../bus/messages/providers.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import type { Transaction } from "../../db/pool.ts";
import { CALLBACK_SECRET, type CallbackEvent } from "../adapters/adapter.ts";
import type { ProvidersDeps } from "../deps.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { liveSecrets } from "../secrets/live-secrets.ts";
import { findAnswer, insertCallback, insertRefusal, type StoredAnswer, setOutcome } from "../sql/callbacks.ts";
import { type ConfigRow, findConfigById } from "../sql/configs.ts";
import { lockPaymentByReference } from "../sql/payments.ts";
import { insertTask, type Task } from "../sql/tasks.ts";
import { type Taken, takeMoney } from "./take-money.ts";

type Answer = ReplyOf<typeof receiveCallback>;

const SIGNATURE_INVALID = refusal(401, "signature_invalid", "The signature does not fit this callback.");
const THROTTLED = refusal(429, "throttled", "Too many callbacks with a wrong signature; try again later.");
const UNREADABLE = refusal(400, "callback_unreadable", "The body is not of the shape that this provider documents.");
const TOO_LARGE = refusal(413, "body_too_large", "The body is too large.");

/** With this a callback for a config that does not exist takes the same way as one with a wrong signature. */
const NO_SECRET = "there is no such config";

export async function receive(deps: ProvidersDeps, request: RequestOf<typeof receiveCallback>): Promise<Answer> {
  const body = Buffer.from(request.bodyBase64, "base64");
  if (body.length > PROVIDER_LIMITS.callbackBytes) return TOO_LARGE;
  // Side by side: somebody waits for the display to say "paid". A config that does not exist takes as long.
  const [config, secrets] = await Promise.all([
    findConfigById(deps.database, request.configId),
    liveSecrets(deps, request.configId),
  ]);
  const adapter = deps.adapters[config?.kind ?? "emvco_generic"];
  const header = request.headers["x-provider-signature"];
  const verdict = adapter.verify({ header, body }, secrets[CALLBACK_SECRET] ?? [NO_SECRET], Date.now());
  if (config === undefined || verdict === "invalid" || verdict === "missing") {
    return await refuse(deps, request, config === undefined ? "config_unknown" : `signature_${verdict}`);
  }
  const event = adapter.decode(body);
  const eventKey = eventKeyOf(event, body);
  const known = await findAnswer(deps.database, { configId: config.config_id, eventKey });
  // A known event does nothing again, so its age is of no concern: its sender gets what it got before.
  if (known !== undefined) return known;
  if (verdict === "stale") return await refuse(deps, request, "timestamp_stale");
  if (event === undefined) {
    deps.log.warn(
      { configId: config.config_id, kind: config.kind },
      "a signed callback is not of the documented shape",
    );
    return UNREADABLE;
  }
  return await record(deps, { config, event, eventKey, body });
}

interface Received {
  readonly config: ConfigRow;
  readonly event: CallbackEvent;
  readonly eventKey: string;
  readonly body: Uint8Array;
}

async function record(deps: ProvidersDeps, { config, event, eventKey, body }: Received): Promise<Answer> {
  const key = { configId: config.config_id, eventKey };
  const recorded = await deps.database.begin(async (sql) => {
    const inserted = await insertCallback(sql, { ...key, eventType: event.type, body });
    // The same event was recorded while this one waited for it.
    if (inserted === undefined) return undefined;
    const effect = await apply(sql, { config, event, eventKey });
    await setOutcome(sql, inserted.callbackId, effect);
    return { ...inserted, ...effect };
  });
  if (recorded === undefined) return await recordedAnswer(deps, key);
  const { callbackId, answer, task, outcome, intentId, issueId } = recorded;
  deps.log.info(
    { callbackId, configId: config.config_id, type: event.type, outcome, intentId, issueId },
    "callback taken",
  );
  if (task !== undefined) deps.tasks.start(task);
  return answer;
}

interface Effect {
  readonly outcome: string;
  readonly intentId: number | null;
  readonly task: Task | undefined;
  readonly issueId: number | undefined;
}

async function apply(sql: Transaction, { config, event, eventKey }: Omit<Received, "body">): Promise<Effect> {
  const { effect } = event;
  const { config_id: configId, organization_id: organizationId } = config;
  if (effect.kind === "paid") {
    const source = { configId, organizationId, eventKey, learnedFrom: event.type };
    const taken: Taken = await takeMoney(sql, source, effect.money);
    return taken;
  }
  const payment =
    effect.kind === "ended" ? await lockPaymentByReference(sql, { configId, reference: effect.reference }) : undefined;
  const intentId = payment?.intent_id ?? null;
  const nothing = { intentId, task: undefined, issueId: undefined };
  if (effect.kind === "none") return { ...nothing, outcome: "ignored" };
  if (payment === undefined) return { ...nothing, outcome: "unknown_payment" };
  // Money that is there is not taken back by an event that was overtaken.
  if (payment.paid_reference !== null) return { ...nothing, outcome: "out_of_order" };
  const task = await insertTask(sql, {
    intentId: payment.intent_id,
    kind: "fail",
    detail: { reason: effect.reason },
    dueInMs: PROVIDER_LIMITS.taskClaimMs,
    isTaken: true,
  });
  return { ...nothing, outcome: effect.reason, task };
}

async function recordedAnswer(
  deps: ProvidersDeps,
  key: { readonly configId: number; readonly eventKey: string },
): Promise<StoredAnswer> {
  const answer = await findAnswer(deps.database, key);
  if (answer === undefined) throw new Error("A recorded callback has no answer.");
  return answer;
}

/** The provider's own id, or the hash of the body. The two cannot be mistaken for each other. */
function eventKeyOf(event: CallbackEvent | undefined, body: Uint8Array): string {
  if (event !== undefined && event.eventId !== null) return `id:${event.eventId}`;
  return `sha256:${createHash("sha256").update(body).digest("hex")}`;
}

/** A config that does not exist and a wrong signature are answered alike; only the record tells them apart. */
async function refuse(
  deps: ProvidersDeps,
  { configId, address }: RequestOf<typeof receiveCallback>,
  reason: string,
): Promise<Answer> {
  if (!(await deps.refusals.admits({ address, configId }))) return THROTTLED;
  await insertRefusal(deps.database, { configId, address: address.slice(0, 64), reason });
  return SIGNATURE_INVALID;
}

function refusal(status: number, code: string, detail: string): Answer {
  return { status, body: JSON.stringify({ code, detail }) };
}
