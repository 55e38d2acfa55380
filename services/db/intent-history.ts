/**
 * An intent as the audit copy has it. The copy may be behind a station, but an intent that has ended is the same for ever, and
 * one that the log has lost is in the copy alone.
 */
import { isEnded, type PaymentIntent } from "../../machines/payment-intent.ts";
import { liftIntent } from "../../machines/station/lift.ts";
import type { Database } from "./pool.ts";
import { readStoredJson } from "./stored-text.ts";

/** The event that says which commits the log has lost; the trail goes on behind it. */
export const LOG_LOST = "log_lost";

/** When the log lost the intent, and what the payment seam recorded of it, which is the truth about its money. */
export interface Fate {
  readonly lostAtMs: number;
  readonly sale: {
    readonly transactionId: number;
    readonly attestedBy: number;
    readonly reference: string;
    readonly settledAtMs: number;
  } | null;
}

/** When the log lost all that it knew of the intent `i`, and what the payment seam had recorded; null while it has not. */
const fateOf = (database: Database) => database`(
  select jsonb_build_object('lostAtMs', floor(extract(epoch from l.at) * 1000)::bigint, 'sale', (
    select jsonb_build_object('transactionId', t.transaction_id, 'attestedBy', t.attested_by, 'reference', t.reference,
      'settledAtMs', floor(extract(epoch from t.settled_at) * 1000)::bigint)
    from transactions t where t.intent_id = i.intent_id))
  from station_events l
  where l.station_id = i.station_id and l.type = ${LOG_LOST}
    and i.version between (l.data ->> 'fromVersion')::bigint and (l.data ->> 'toVersion')::bigint
  order by l.version limit 1)`;

export interface CopiedIntent {
  readonly stationId: number;
  readonly intent: PaymentIntent;
}

/** The intent as last committed, of a station or of an organization; undefined where there is none. */
export async function findCopiedIntent(
  database: Database,
  key: { readonly intentId: number } & ({ readonly stationId: number } | { readonly organizationId: number }),
): Promise<CopiedIntent | undefined> {
  const place =
    "stationId" in key
      ? database`i.station_id = ${key.stationId}`
      : database`i.organization_id = ${key.organizationId}`;
  const [row] = await database<{ station_id: number; intent: string; fate: Fate | null }[]>`
    select i.station_id, i.intent, ${fateOf(database)} as fate from intent_history i
    where i.intent_id = ${key.intentId} and ${place}`;
  return row && { stationId: row.station_id, intent: asItEnded(readIntent(row.intent), readStoredJson(row.fate)) };
}

/** An intent from its JSON text, as the machine version of its time wrote it. */
export function readIntent(text: string): PaymentIntent {
  return liftIntent(JSON.parse(text) as PaymentIntent);
}

/** As it was, while it is not lost; else succeeded if it is paid, and at the latest expired when it was lost. */
function asItEnded(intent: PaymentIntent, fate: Fate | null): PaymentIntent {
  if (fate === null || intent.status === "succeeded") return intent;
  if (fate.sale === null) {
    return isEnded(intent.status)
      ? intent
      : { ...intent, status: "expired", attestation: null, endedAtMs: fate.lostAtMs };
  }
  const { transactionId, attestedBy, reference, settledAtMs } = fate.sale;
  // A transaction that no cashier attested was confirmed by a provider.
  const by = attestedBy === 0 ? "provider" : "cashier";
  const attested = intent.attestation ?? { by, cashierId: attestedBy, cashierName: "", atMs: settledAtMs };
  return {
    ...intent,
    status: "succeeded",
    attestation: { ...attested, commandId: "", reference, transactionId },
    endedAtMs: settledAtMs,
  };
}
