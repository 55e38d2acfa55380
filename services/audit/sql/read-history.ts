/** Reading what is known of a command or an intent. */
import type { PaymentIntent } from "../../../machines/payment-intent.ts";
import { liftIntent } from "../../../machines/station/lift.ts";
import type { StationResponse } from "../../bus/messages/station.ts";
import { STATION_LOG } from "../../bus/streams.ts";
import type { Database } from "../../db/pool.ts";
import { readStoredJson } from "../../db/stored-text.ts";
import type { PositionedRead } from "../catch-up.ts";
import { keyText } from "../copy/stored-json.ts";
import { asItEnded, type Fate } from "../lost-intent.ts";
import { LOG_LOST } from "./log-losses.ts";

export interface History extends PositionedRead {
  /** The answer that the command got, or null. */
  readonly response: StationResponse | null;
  /** Up to which version the station's commits are copied. */
  readonly version: number;
  /** The station's intent as last committed, or null. */
  readonly intent: PaymentIntent | null;
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

/** Both, and how far the copier has come, in one statement: they are of the same moment. */
export async function readHistory(
  database: Database,
  key: {
    readonly stationId: number;
    readonly commandId?: string | undefined;
    readonly intentId?: number | undefined;
  },
): Promise<History> {
  const commandId = key.commandId === undefined ? null : keyText(key.commandId);
  const [row] = await database<
    { position: number; version: number | null; response: string | null; intent: string | null; fate: Fate | null }[]
  >`
    select p.sequence as position,
      (select h.log_version from audit_heads h where h.station_id = ${key.stationId}) as version,
      (select c.response from station_commands c
       where c.station_id = ${key.stationId} and c.command_id = ${commandId}::text
         and not c.is_lost) as response,
      i.intent, ${fateOf(database)} as fate
    from audit_position p
    left join intent_history i on i.station_id = ${key.stationId} and i.intent_id = ${key.intentId ?? null}::bigint
    where p.stream = ${STATION_LOG.name}`;
  return {
    position: row?.position ?? 0,
    version: row?.version ?? 0,
    response: row?.response ? readResponse(row.response) : null,
    intent: row?.intent ? asItEnded(readIntent(row.intent), readStoredJson(row.fate)) : null,
  };
}

/** An intent as the machine version of its time wrote it. */
function readIntent(text: string): PaymentIntent {
  return liftIntent(JSON.parse(text) as PaymentIntent);
}

function readResponse(text: string): StationResponse {
  const response = JSON.parse(text) as StationResponse;
  return response.intent === null ? response : { ...response, intent: liftIntent(response.intent) };
}

/** The organization's intent as last committed, with its station; undefined when there is none. */
export async function findOrganizationIntent(
  database: Database,
  key: { readonly organizationId: number; readonly intentId: number },
): Promise<{ readonly stationId: number; readonly intent: PaymentIntent } | undefined> {
  const [row] = await database<{ station_id: number; intent: string; fate: Fate | null }[]>`
    select i.station_id, i.intent, ${fateOf(database)} as fate from intent_history i
    where i.intent_id = ${key.intentId} and i.organization_id = ${key.organizationId}`;
  return row && { stationId: row.station_id, intent: asItEnded(readIntent(row.intent), readStoredJson(row.fate)) };
}
