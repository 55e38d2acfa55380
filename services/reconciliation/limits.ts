/** Every limit of the reconciliation service, with its reason. */

/** To PostgreSQL, of one process: half of them for runs and imports, which keep theirs for minutes. */
export const CONNECTIONS = { most: 8 } as const;

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

/** Of the runs. */
export const RUN_LIMITS = {
  /** Payments that were settled up to this many days before a run's first line are compared: the longest hold-back of a provider. */
  lookBackDays: 120,
  /** A line is in time until this many days after its account's settlement delay: weekends and bank holidays. */
  graceDays: 5,
  /** A line may be booked a day before the payment's day in UTC: the statement's day is local. */
  earlyDays: 1,
  /** Days between a line and a candidate without a common reference. */
  candidateDays: 5,
  /** Payments of the same amount within these days; with more, the line is ambiguous without listing them. */
  candidates: 20,
  /** Of a line, the best ones; a person chooses among these. */
  listedCandidates: 10,
  /** Rows of one file that become issues of their own; with more, the file is wrong as a whole. */
  malformedOfImport: 10_000,
  /** A terminal belongs to a station by this many exact matches, with this share of them: fewer say too little. */
  terminalMatches: 5,
  terminalShare: 0.9,
  /** Slip numbers of at most so many characters come again within days (ISO 8583, fields 11 and 38). */
  shortReferenceCharacters: 6,
  /** Of a word in a bank's text that can be a reference. */
  shortestWord: 4,
  /** The days of one run: ten years with their leap days, the longest that books are kept. */
  daysOfRun: 3_653,
  /** Memory of one hash join or sort; a million rows of keys fit. */
  workMemoryMiB: 96,
  /** Runs that people have started in one process: each keeps a connection, and a processor of PostgreSQL busy. */
  runsAtOnce: 2,
  /** How long a service that stops waits for its runs; one that is cut off leaves nothing, and starts again by itself. */
  stopMs: 10_000,
  /** An account's run starts when no import of it has ended for this long: imports often come together. */
  quietMs: 500,
  /** A run starts all the same when it has waited this long. */
  longestWaitMs: 60_000,
  /** Before a run that has failed starts again by itself, times its failures. */
  retryMs: 60_000,
  attempts: 5,
  /** How often the accounts that wait for a run are read. */
  wantedIntervalMs: 500,
  /** How long runs can be compared with later ones: a business year and the time to close it. */
  runRetentionDays: 550,
  retention: { everyMs: 24 * 3_600_000, rowsPerBatch: 5_000 },
  /** The longest time that the summary for the metrics may take. */
  summaryMs: 5_000,
} as const;
