/** Every limit of the reconciliation service, with its reason. */

/** Of the imports. */
export const IMPORT_LIMITS = {
  /** How long an import stays with a process that reports no progress: a batch takes milliseconds, and a restart may wait. */
  leaseMs: 30_000,
  /** Rows of one COPY: a few hundred milliseconds, far within a statement's time-out. */
  rowsPerCopy: 5_000,
  /** The text of one COPY, which is held in memory beside one record. */
  charactersPerCopy: 4 * 1_024 * 1_024,
  /** The longest statement or transaction over a whole file: five million lines take minutes. */
  longestWorkMs: 60 * 60_000,
  /** Control totals of one file: one for each batch, day and currency of a year. */
  totals: 10_000,
  /** Accounts that a file names and that are compared with its own. */
  namedAccounts: 16,
} as const;
