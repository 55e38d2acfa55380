/** What a device keeps over a power cut, as one text of its storage: who it is, the attempt in hand, what is to be reported. */
import { OUTCOMES, type Report } from "./client.ts";
import { isFlag, isInteger, isText, listOf, objectOf, oneOf, orNull, parseJson } from "./guards.ts";

/** Three functions on one text. A write replaces the text as a whole or leaves the old one. */
export interface DeviceStorage {
  /** Null when nothing is stored. */
  read(): Promise<string | null>;
  write(text: string): Promise<void>;
  remove(): Promise<void>;
}

/** The newest collection that this device has begun. */
export interface Attempt {
  readonly intent_id: number;
  /** The device's reference of the attempt, and the key of its first report. */
  readonly key: string;
  readonly step: "launching" | "result" | "answered";
}

export interface DeviceRecord {
  readonly device_id: number;
  readonly credential: string;
  /** False until the service has accepted the credential once. */
  readonly accepted: boolean;
  /** True until the first poll with this credential is answered: what it shows may have been launched before. */
  readonly first_poll_pending: boolean;
  readonly attempt: Attempt | null;
  /** Not yet answered, oldest first. */
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

/** Null when nothing is stored; "damaged" when what is stored cannot be read. */
export function readRecord(text: string | null): DeviceRecord | null | "damaged" {
  if (text === null) return null;
  const value = parseJson(text);
  // A program before this kit stored the first two alone. What it had begun is not known, so the first poll launches nothing.
  const rest = { accepted: true, first_poll_pending: true, attempt: null, reports: [] };
  const record = { ...rest, ...(value as object) };
  return isRecord(record) ? record : "damaged";
}
