/** The work of a virtual smart POS companion: fetch, let the make-believe guest pay, report. */
import type { DeviceClient } from "./device-client.ts";
import type { Assignment } from "./device-contract.ts";
import { ServiceRefusal } from "./device-error.ts";
import type { DeviceLog } from "./device-loop.ts";
import { clientLimits } from "./limits.ts";
import { pause } from "./pace.ts";

/** The reference that the make-believe payment application gives an attempt, for example `VIRT-000123`. */
export function virtualReference(intentId: number): string {
  return `VIRT-${String(intentId).padStart(6, "0")}`;
}

export function createCompanionTurn(deps: {
  readonly client: DeviceClient;
  readonly log: DeviceLog;
  readonly signal: AbortSignal;
}): () => Promise<number> {
  const { client, log, signal } = deps;
  let current: Assignment | null = null;
  let doneIntentId = 0;
  return async () => {
    const fetched = await client.assignment(signal);
    if (fetched !== undefined) current = fetched;
    // `processing` says that a report was recorded: this device made it before it was restarted.
    if (current === null || current.intent_id === doneIntentId || current.status === "processing")
      return clientLimits.companionPollMs;
    const { intent_id: intentId, amount, currency } = current;
    log.info({ intentId, amount, currency }, `collecting ${currency} ${amount}`);
    await pause(clientLimits.collectMs, signal);
    if (signal.aborted) return 0;
    await reportSuccess(client, log, intentId, signal);
    doneIntentId = intentId;
    return clientLimits.companionPollMs;
  };
}

async function reportSuccess(
  client: DeviceClient,
  log: DeviceLog,
  intentId: number,
  signal: AbortSignal,
): Promise<void> {
  const providerReference = virtualReference(intentId);
  try {
    await client.report(
      {
        intent_id: intentId,
        outcome: "reported_success",
        provider_reference: providerReference,
        provider_code: "00",
        // Made of the intent alone, so that a restarted companion repeats its report instead of making a second one.
        client_idempotency_key: `virtual-companion-${intentId}`,
      },
      signal,
    );
    log.info({ intentId, providerReference }, `reported success with reference ${providerReference}`);
  } catch (error) {
    // The collection ended meanwhile: the cashier starts a new one, a retry would be wrong (contract, "Errors" 1).
    if (!(error instanceof ServiceRefusal) || (error.httpStatus !== 409 && error.httpStatus !== 404)) throw error;
    const { code: reason, intentStatus } = error;
    log.warn({ intentId, reason, intentStatus }, "the collection ended before it was reported");
  }
}
