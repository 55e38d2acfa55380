/** Every limit and wait of the settlement service, with its reason. */
export const SETTLEMENT_LIMITS = {
  /** How long an order's writer waits for the relay to notify the station, before it does so itself. */
  flushTimeoutMs: 500,
  /** How long it then waits for the station's answer. A cashier waits for both at most: a second. */
  notifyTimeoutMs: 500,
  /** How long the answer to an opening is kept for a repetition: far longer than any client retries. */
  openingRetentionDays: 30,
  /** How long the intent of an idempotency key is kept, and how it ended: as long as the answer to an opening. */
  intentRecordRetentionDays: 30,
  /** Reads of an idempotency key that another request writes at the same moment: the first read after it sees it. */
  drawAttempts: 3,
  /** `Retry-After` for an intent whose end is not copied yet: the copy is a moment behind the log. */
  copyRetryMs: 1_000,
  /** How often the retention job runs, and the rows of one statement, so that it holds no lock for long. */
  retention: { everyMs: 3_600_000, rowsPerBatch: 5_000 },
  /** A longer reference is compared by its hash, so that an index entry with it stays small. */
  referenceKeyCharacters: 200,
  /**
   * Terminals number their slips and approvals with six characters at most (ISO 8583, fields 11 and 38) and use them
   * again, many of them each day. A longer reference, such as a retrieval reference number, is a payment's own.
   */
  shortReferenceCharacters: 6,
  /** How long a short reference is compared: a business day, less than the time until the same number comes tomorrow. */
  shortReferenceHours: 20,
  /** Settlements wait for the disk together, so a few connections already share its flushes; more would only queue there. */
  databaseConnections: 8,
} as const;
