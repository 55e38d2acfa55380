/** The record that survives a power cut, stored as one text: the device's identity, the newest attempt, the pending reports. */
import { OUTCOMES, type Report } from "./client.ts";
import { isFlag, isInteger, isText, listOf, objectOf, oneOf, orNull, parseJson } from "./guards.ts";

/** Storage for one text. A write is atomic: it replaces the whole text or keeps the old one. */
export interface DeviceStorage {
  /** Null when nothing is stored. */
  read(): Promise<string | null>;
  write(text: string): Promise<void>;
  remove(): Promise<void>;
}

/** The newest collection that this device has begun. */
export interface Attempt {
  readonly intent_id: number;
  /** The device's reference for the attempt, and the idempotency key of its first report. */
  readonly key: string;
  readonly step: "launching" | "result" | "answered";
}

export interface DeviceRecord {
  readonly device_id: number;
  readonly credential: string;
  /** False until the service has accepted the credential once. */
  readonly accepted: boolean;
  /** True until the first poll with this credential is answered: an earlier record may have launched its collection. */
  readonly first_poll_pending: boolean;
  readonly attempt: Attempt | null;
  /** Reports without a final answer, oldest first. */
  readonly reports: readonly Report[];
}

const isRecord = objectOf<DeviceRecord>({
  device_id: isInteger,
  credential: isText,
  accepted: isFlag,
  first_poll_pending: isFlag,
  attempt: orNull(
    objectOf<Attempt>({ intent_id: isInteger, key: isText, step: oneOf(["launching", "result", "answered"]) }),
  ),
  reports: listOf(
    objectOf<Report>({
      intent_id: isInteger,
      outcome: oneOf(OUTCOMES),
      provider_reference: isText,
      provider_code: isText,
      client_idempotency_key: isText,
    }),
  ),
});

/** Null when nothing is stored; "damaged" when the stored text cannot be parsed. */
export function readRecord(text: string | null): DeviceRecord | null | "damaged" {
  if (text === null) return null;
  const value = parseJson(text);
  // Programs older than this kit stored only the first two fields: their launches are unknown, so the first poll launches nothing.
  const rest = { accepted: true, first_poll_pending: true, attempt: null, reports: [] };
  const record = { ...rest, ...(value as object) };
  return isRecord(record) ? record : "damaged";
}
