/** Every limit and wait of the settlement service, with its reason. */
export const SETTLEMENT_LIMITS = {
  /** How long a writer of an order waits for the relay to notify the station. After that the writer notifies the station. */
  flushTimeoutMs: 500,
  /** How long the writer then waits for the station's answer. So a cashier has an answer within a second. */
  notifyTimeoutMs: 300,
  /** How long the answer to an opening stays stored for a repeated request: far longer than any client retries. */
  openingRetentionDays: 30,
  /** How long the intent of an idempotency key and its end stay stored: as long as the answer to an opening. */
  intentRecordRetentionDays: 30,
  /** Attempts to read an idempotency key while another request writes it: the first read after that write finds the key. */
  keyReadAttempts: 3,
  /** `Retry-After` for an intent whose end the audit copy does not have yet: the copy lags a moment behind the log. */
  copyRetryMs: 1_000,
  /** How often the retention job runs, and how many rows one statement deletes, so that it holds no lock for long. */
  retention: { everyMs: 3_600_000, rowsPerBatch: 5_000 },
  /** A longer reference is compared by its hash, so that its index entry stays small. */
  referenceKeyCharacters: 200,
  /**
   * Terminals number their slips and approvals with six characters at most (ISO 8583, fields 11 and 38) and use them
   * again, many of them each day. A longer reference, such as a retrieval reference number, belongs to one payment.
   */
  shortReferenceCharacters: 6,
  /** How long a short reference is compared: one business day, and less than the time until a terminal uses it again. */
  shortReferenceHours: 20,
  /** Settlements mostly wait for the disk, and a few connections already share each flush. More would only queue for it. */
  databaseConnections: 8,
} as const;
