/**
 * Reads an intent from the audit copy. The copy may be behind a station, but an ended intent changes only by new
 * evidence. An intent that the log has lost is only in the copy.
 */
import { isEnded, type PaymentIntent } from "../../machines/payment-intent.ts";
import type { StationEvent } from "../../machines/station/event.ts";
import { reasonWhenLost } from "../../machines/station/lost-collections.ts";
import { withLaterEvents } from "../../machines/station/reasons.ts";
import { DATABASE_LIMITS } from "./limits.ts";
import type { Database } from "./pool.ts";
import { readStoredJson } from "./stored-text.ts";

/** The type of the event that records which commits the log has lost. The audit log continues after it. */
export const LOG_LOST = "log_lost";

/** When the log lost the intent, and the payment seam's transaction, which decides whether the intent is paid. */
interface Fate {
  readonly lostAtMs: number;
  readonly sale: {
    readonly transactionId: number;
    readonly attestedBy: number;
    readonly reference: string;
    readonly settledAtMs: number;
  } | null;
}

/** The `Fate` of the intent `i`; null while the log has it. */
const fateOf = (database: Database) => database`(
  select jsonb_build_object('lostAtMs', floor(extract(epoch from l.at) * 1000)::bigint, 'sale', (
    select jsonb_build_object('transactionId', t.transaction_id, 'attestedBy', t.attested_by, 'reference', t.reference,
      'settledAtMs', floor(extract(epoch from t.settled_at) * 1000)::bigint)
    from transactions t where t.intent_id = i.intent_id))
  from station_events l
  where l.station_id = i.station_id and l.type = ${LOG_LOST}
    and i.version between (l.data ->> 'fromVersion')::bigint and (l.data ->> 'toVersion')::bigint
  order by l.version limit 1)`;

/** Evidence from after the commit of the intent `i`, oldest first, with the fields that reasons need. */
const laterEventsOf = (database: Database) => database`coalesce((
  select jsonb_agg(jsonb_build_object('type', e.type, 'outcome', e.data -> 'outcome', 'issue', e.data -> 'issue',
    'blockedReason', e.data -> 'blockedReason') order by e.version, e.ordinal)
  from (
    select version, ordinal, type, data from station_events
    where intent_id = i.intent_id and station_id = i.station_id and version > i.version
      and type in ('late_evidence_kept', 'late_money_kept', 'money_differs', 'unclear_resolved')
    order by version desc, ordinal desc limit ${DATABASE_LIMITS.laterEvidence}) e), '[]'::jsonb)`;

interface CopiedIntent {
  readonly stationId: number;
  readonly intent: PaymentIntent;
}

/**
 * An intent of a station or of an organization, as last committed, with its reason by later evidence; undefined when
 * there is none.
 */
export async function findCopiedIntent(
  database: Database,
  key: { readonly intentId: number } & ({ readonly stationId: number } | { readonly organizationId: number }),
): Promise<CopiedIntent | undefined> {
  const place =
    "stationId" in key
      ? database`i.station_id = ${key.stationId}`
      : database`i.organization_id = ${key.organizationId}`;
  const [row] = await database<{ station_id: number; intent: string; fate: Fate | null; later: StationEvent[] }[]>`
    select i.station_id, i.intent, ${fateOf(database)} as fate, ${laterEventsOf(database)} as later
    from intent_history i
    where i.intent_id = ${key.intentId} and ${place}`;
  if (row === undefined) return undefined;
  const { station_id: stationId, fate, later } = row;
  const intent = asItEnded(readIntent(row.intent), readStoredJson(fate));
  return { stationId, intent: withLaterEvents(intent, later) };
}

export function readIntent(text: string): PaymentIntent {
  return JSON.parse(text) as PaymentIntent;
}

/**
 * The intent with its end. An intent that the log has not lost is unchanged. A lost one has succeeded when there is a
 * transaction. Otherwise, if it was open, it expired when the log lost it, with the reason that its station gets back.
 */
function asItEnded(intent: PaymentIntent, fate: Fate | null): PaymentIntent {
  if (fate === null || intent.status === "succeeded") return intent;
  if (fate.sale === null) {
    return isEnded(intent.status)
      ? intent
      : {
          ...intent,
          status: "expired",
          attestation: null,
          reasonSinceEnd: reasonWhenLost(intent) ?? "",
          endedAtMs: fate.lostAtMs,
        };
  }
  const { transactionId, attestedBy, reference, settledAtMs } = fate.sale;
  // A transaction that no cashier attested was confirmed by a provider.
  const by = attestedBy === 0 ? "provider" : "cashier";
  const attested = intent.attestation ?? { by, cashierId: attestedBy, cashierName: "", atMs: settledAtMs };
  const { provider } = intent;
  const confirmedAtMs = provider?.confirmedAtMs ?? settledAtMs;
  return {
    ...intent,
    status: "succeeded",
    attestation: { ...attested, commandId: "", reference, transactionId },
    // Only a confirmed QR settles, so a repeated confirmation of the same payment is no second payment.
    provider: provider && { ...provider, qrPayload: "", providerReference: reference, confirmedAtMs },
    endedAtMs: settledAtMs,
  };
}
