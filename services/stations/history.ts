/** What has left a station's bounded state is asked of the audit copy. */

import type { NatsConnection } from "nats";
import { z } from "zod";
import { INTENT_STATES, type PaymentIntent } from "../../machines/payment-intent.ts";
import { recallHistory } from "../bus/messages/audit.ts";
import type { StationResponse } from "../bus/messages/station.ts";
import { call } from "../bus/operation.ts";
import { STATION_LIMITS } from "./limits.ts";

export interface History {
  /** The answer that was given to this command id. */
  readonly response: Omit<StationResponse, "sequence"> | null;
  /** The intent as it was last committed. */
  readonly intent: PaymentIntent | null;
}

export interface Question {
  readonly stationId: number;
  readonly commandId?: string;
  readonly intentId?: number;
  /** The answer was committed by this version of the station, or never. */
  readonly throughVersion?: number;
}

// Both were written by this program; the schemas hold what decisions are made by.
const intentSchema = z.looseObject({
  intentId: z.int(),
  status: z.enum(INTENT_STATES),
  deviceId: z.int().nullable(),
});
const responseSchema = z.looseObject({
  reply: z.looseObject({ ok: z.boolean() }),
  intent: intentSchema.nullable(),
});

/** Asks by command id, by intent id, or both. Throws `UnavailableError` or `RefusedError` when there is no answer. */
export async function recall(nc: NatsConnection, question: Question): Promise<History> {
  const { response, intent } = await call(nc, recallHistory, question, STATION_LIMITS.gatherMs);
  return {
    response: response === null ? null : (responseSchema.parse(response) as unknown as StationResponse),
    intent: intent === null ? null : (intentSchema.parse(intent) as unknown as PaymentIntent),
  };
}
