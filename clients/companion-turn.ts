/**
 * The work of a virtual smart POS companion: it fetches the assignment, lets the make-believe guest pay, and reports; or it
 * does what its name or the amount forces.
 */
import type { Assignment, DeviceSnapshot } from "./device/client.ts";
import type { TurnDeps } from "./device/loop.ts";
import { pause } from "./device/pace.ts";
import { ServiceError } from "./device/transport.ts";
import { clientLimits } from "./limits.ts";
import { type Behaviour, behaviourOf, namedBehaviour, reportOf } from "./magic-behaviours.ts";

/** The reference that the make-believe payment application gives an attempt, for example `VIRT-000123`. */
function virtualReference(intentId: number): string {
  return `VIRT-${String(intentId).padStart(6, "0")}`;
}

/** Whether the companion of this name sends no heartbeats. */
export function isSilentName(name: string): boolean {
  return namedBehaviour(name) === "stay_offline";
}

export function createCompanionTurn(deps: TurnDeps): () => Promise<number> {
  const { client, log, signal, checkIn } = deps;
  let current: Assignment | null = null;
  let doneIntentId = 0;
  /** A collection that is reported once it is over, and as what. */
  let late: { readonly intentId: number; readonly behaviour: Behaviour } | null = null;
  return async () => {
    const named = namedBehaviour(checkIn.name());
    if (named === "never_poll" || named === "stay_offline") return clientLimits.companionPollMs;
    const fetched = await client.assignment(signal);
    if (fetched !== undefined) current = fetched;
    if (late !== null && current?.intent_id !== late.intentId) {
      await report(deps, late.intentId, late.behaviour);
      late = null;
    }
    // `processing` means that a report was recorded: this device made it before it was restarted.
    if (current === null || current.intent_id === doneIntentId || current.status === "processing")
      return clientLimits.companionPollMs;
    const { intent_id: intentId, amount, currency, expires_at: expiresAt } = current;
    log.info({ intentId, amount, currency }, `collecting ${currency} ${amount}`);
    await pause(clientLimits.collectMs, signal);
    if (signal.aborted) return 0;
    // The owner may have renamed the device since its last heartbeat: the newest name decides.
    const snapshot = await checkIn.once(signal);
    const behaviour = behaviourOf(snapshot.name, amount);
    if (behaviour === "late_success" || behaviour === "late_decline") late = { intentId, behaviour };
    else await report(deps, intentId, behaviour);
    doneIntentId = intentId;
    if (behaviour === "go_offline") await staySilent(deps, expiresAt, snapshot);
    return clientLimits.companionPollMs;
  };
}

/** Makes the behaviour's report, if it has one. */
async function report(deps: TurnDeps, intentId: number, behaviour: Behaviour): Promise<void> {
  const magic = reportOf(behaviour);
  if (magic === null) {
    deps.log.info({ intentId, behaviour }, "reporting nothing");
    return;
  }
  // A companion that knows nothing of the payment does not know its reference.
  const providerReference = magic.outcome === "reported_unknown" ? "" : virtualReference(intentId);
  const input = {
    intent_id: intentId,
    outcome: magic.outcome,
    provider_reference: providerReference,
    provider_code: magic.providerCode,
    // Made of the intent alone, so that a restarted companion repeats its report instead of making a second one.
    client_idempotency_key: `virtual-companion-${intentId}`,
  };
  for (let times = behaviour === "report_twice" ? 2 : 1; times > 0; times -= 1) {
    try {
      const answer = await deps.client.report(input, deps.signal);
      const { outcome } = answer.report;
      deps.log.info({ intentId, behaviour, outcome, providerReference }, sentence(outcome, providerReference));
    } catch (error) {
      // The collection ended meanwhile: the cashier starts a new one, a retry would be wrong (contract, "Errors" 1).
      if (!(error instanceof ServiceError) || (error.httpStatus !== 409 && error.httpStatus !== 404)) throw error;
      const { code: reason, intentStatus } = error;
      deps.log.warn({ intentId, behaviour, reason, intentStatus }, "the collection ended before it was reported");
    }
  }
}

function sentence(outcome: string, providerReference: string): string {
  const what = outcome.replace("_", " ");
  return providerReference === "" ? what : `${what} with reference ${providerReference}`;
}

/** Sleeps until the collection's deadline has passed, by the service's clock. */
async function staySilent(
  { log, signal, checkIn }: TurnDeps,
  expiresAt: string,
  snapshot: DeviceSnapshot,
): Promise<void> {
  const leftMs = Date.parse(expiresAt) - Date.parse(snapshot.server_time);
  const silentMs = Number.isFinite(leftMs) ? Math.min(Math.max(leftMs, 0), clientLimits.silenceMaxMs) : 0;
  log.info({ silentMs }, "going offline until the collection has ended");
  checkIn.beQuiet(silentMs + clientLimits.returnAfterMs);
  await pause(silentMs + clientLimits.returnAfterMs, signal);
}
