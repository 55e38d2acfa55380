/** Every limit of the reconciliation service, with its reason. */

/** Connections of one process to PostgreSQL. Half of them are for runs and imports, which keep one for minutes. */
export const CONNECTIONS = { most: 12 } as const;

export const IMPORT_LIMITS = {
  /** How long an import stays with a process that reports no progress: a batch takes milliseconds, and a restart can wait. */
  leaseMs: 30_000,
  /** Imports that one process carries out at once: each holds a batch in memory and keeps a connection busy; two use two cores. */
  importsAtOnce: 2,
  /** How often the imports that wait are read. */
  waitingIntervalMs: 500,
  /** Of one import: each killed process uses one, and a file that always fails must not be tried for ever. */
  attempts: 10,
  /** A file is kept for this time after its import, for previews of mappings and questions to the provider. */
  fileRetentionHours: 48,
  /** Uploaded chunks without an import belong to an interrupted upload; the longest upload takes some hours. */
  orphanHours: 24,
  /** Lines and malformed rows that are written at once while the next are read: a few hundred milliseconds, and little of it is waiting. */
  linesPerBatch: 5_000,
  /** The text of one batch; two are held in memory beside one record. */
  charactersPerBatch: 4 * 1_024 * 1_024,
  /** Records that are read before the event loop serves the connection: about a millisecond. */
  recordsPerTurn: 25,
  /** How often an import stores its progress: a progress bar shows no more. */
  progressMs: 250,
  /** How long a file is read without a row before its import reports its progress even so: a part of the lease. */
  silentMs: 5_000,
  /** The longest statement or transaction over a whole file: five million lines take minutes. */
  longestWorkMs: 60 * 60_000,
  /** A file with more malformed rows than this, and fewer other records, is not of the declared format; reading stops. */
  mostlyMalformed: 10_000,
  /** Control totals of one file: one for each batch, day and currency of a year. */
  totals: 10_000,
  /** Accounts that a file names and that are compared with the account of the import. */
  namedAccounts: 16,
} as const;

/** Of decisions of operators about imports. */
export const DECISION_LIMITS = {
  /** How long a decision waits for the row of its import: an attempt may lock it for minutes while it stores the lines. */
  lockWaitMs: 1_000,
  retryMs: 5_000,
} as const;

export const WITHDRAWAL_LIMITS = {
  /** How long the reply waits for the end of the withdrawal: a file of one month is removed by then. */
  answerMs: 2_000,
  /** How long the first attempt waits for the account. */
  firstMs: 1_000,
  /** How long a short attempt of a stored withdrawal waits for the account: the next withdrawal may have a free account. */
  tryMs: 50,
  /** How often short attempts are made: a person waits for the change of the status. */
  triesMs: 1_000,
  /** How long an attempt in turn waits: runs and imports that follow one another leave no gap for a short attempt. */
  turnMs: 10_000,
  /** How often attempts in turn are made: short attempts carry out most withdrawals. */
  turnsMs: 5_000,
} as const;

/** Of mappings, their previews and their tests. */
export const MAPPING_LIMITS = {
  /** Versions of all mappings of an organization: a chain has a few dozen kinds of files. */
  mappings: 2_000,
  /** Tests that one process carries out at once: each parses as fast as it can, and requests wait meanwhile. */
  testsAtOnce: 4,
  testRetryMs: 5_000,
  /** How long the reply waits for the end of a test: less than the timeout of a call; a file of one month is read by then. */
  testAnswerMs: 2_000,
  /** How often a test stores its progress. */
  testProgressMs: 1_000,
  /** The process of a test that has stored no progress for this long has ended. */
  testLostMs: 30_000,
  /** Malformed rows that a test lists: a mapping that does not fit has the same problem in each row. */
  testMalformedRows: 20,
  /** A test is of use until its mapping is corrected. */
  testRetentionDays: 7,
} as const;

/** Of lists of lines. */
export const LINE_LIMITS = {
  /** Files that a line names as its sources: a statement that is exported each day repeats a line about thirty times. */
  sources: 40,
} as const;

/** Of periods and their closings. */
export const PERIOD_LIMITS = {
  /** How long a close waits for an import that stores the lines of a large file. */
  lockWaitMs: 1_000,
  retryMs: 5_000,
  /** Up to this many lines of a closing, each page of its export sorts all of them: a few milliseconds. */
  sortedLines: 10_000,
  /** How far apart the first and the last day of one list are: two months of days, two years of months. */
  days: { day: 62, month: 732 },
} as const;

export const RUN_LIMITS = {
  /** Payments settled up to this many days before a run's first line are compared: a provider holds funds back no longer. */
  lookBackDays: 120,
  /** A line is in time until this many days after its account's settlement delay: weekends and bank holidays. */
  graceDays: 5,
  /** A line may be booked a day before the payment's day in UTC: the statement's day is local. */
  earlyDays: 1,
  /** Days between a line and a candidate without a common reference. */
  candidateDays: 5,
  /** Payments of the same amount within `candidateDays`; with more, the line is ambiguous without listing them. */
  candidates: 20,
  /**
   * Payouts of an account that may have arrived together, or credits of a day that may be parts of one payout. All their sums
   * are compared, 256 at most: a provider pays out once a day, and the days of candidates are seven. With more parts, sums are
   * equal by chance too often.
   */
  groupedParts: 8,
  /** The best candidates of a line, among which a person chooses. */
  listedCandidates: 10,
  /** Rows of one file that become issues of their own; with more, the file is wrong as a whole. */
  malformedOfImport: 10_000,
  /** A terminal belongs to a station that has this many of its exact matches, and this share of them; fewer prove too little. */
  terminalMatches: 5,
  terminalShare: 0.9,
  /** Slip numbers of at most this many characters repeat within days (ISO 8583, fields 11 and 38). */
  shortReferenceCharacters: 6,
  /** Characters of the shortest word in a text that can be a reference. */
  shortestWord: 4,
  /** The days of one run: ten years with their leap days, the longest that books are kept. */
  daysOfRun: 3_653,
  /** Memory of one hash join or sort; a million rows of keys fit. */
  workMemoryMiB: 96,
  /** Runs that people have started in one process: each keeps a connection, and a processor of PostgreSQL busy. */
  runsAtOnce: 2,
  /** How long a person's request waits for another run of the account: less than the timeout of a call. */
  turnMs: 3_000,
  turnPollMs: 100,
  /** How long a service that stops waits for the work that it has cancelled, before it closes the connections. */
  stopMs: 1_000,
  /** An account's run starts when no import of it has ended for this long: imports often come together. */
  quietMs: 500,
  /** A run that has waited this long starts without a quiet time. */
  longestWaitMs: 60_000,
  /**
   * An account without an import (a follower) also gets a run after the imports of other accounts, because accounts share
   * payments. It waits longer: with many accounts, each of several files would otherwise start a run of every account.
   */
  followerQuietMs: 2_000,
  followerLongestWaitMs: 600_000,
  /** How long a failed run waits before it starts again by itself, multiplied by its failures. */
  retryMs: 60_000,
  attempts: 5,
  /** How often the accounts that wait for a run are read. */
  wantedIntervalMs: 500,
  /** How long runs can be compared with later ones: a business year and the time to close it. */
  runRetentionDays: 550,
  retention: { everyMs: 24 * 3_600_000, rowsPerBatch: 5_000 },
  /** How old the summary for the metrics may be. */
  summaryKeptMs: 60_000,
  /** The longest time that the summary for the metrics may take. */
  summaryMs: 5_000,
} as const;
