/** Every limit of the reconciliation service, with its reason. */

/** To PostgreSQL, of one process: half of them for runs and imports, which keep theirs for minutes. */
export const CONNECTIONS = { most: 12 } as const;

export const IMPORT_LIMITS = {
  /** How long an import stays with a process that reports no progress: a batch takes milliseconds, and a restart may wait. */
  leaseMs: 30_000,
  /** Imports that one process carries out at once: each holds a batch in memory and keeps a connection busy; two use two cores. */
  importsAtOnce: 2,
  /** How often the imports that wait are read. */
  waitingIntervalMs: 500,
  /** Of one import: a process that is killed ends one, and a file that fails each time must not be tried for ever. */
  attempts: 10,
  /** A file is kept for so long after its import, for previews of mappings and questions to the provider. */
  fileRetentionHours: 48,
  /** Uploaded chunks without an import belong to an upload that was cut off; the longest upload takes some hours. */
  orphanHours: 24,
  /** Lines and malformed rows that are written at once while the next are read: a few hundred milliseconds, and little of it is waiting. */
  linesPerBatch: 5_000,
  /** The text of one batch; two are held in memory beside one record. */
  charactersPerBatch: 4 * 1_024 * 1_024,
  /** Records that are read before the connection has its turn: about a millisecond. */
  recordsPerTurn: 25,
  /** How often an import stores how far it is: a progress bar shows no more. */
  progressMs: 250,
  /** How long a file is read without a row before its import reports all the same: a part of the lease. */
  silentMs: 5_000,
  /** The longest statement or transaction over a whole file: five million lines take minutes. */
  longestWorkMs: 60 * 60_000,
  /** Malformed rows of a file that has fewer lines than these: it is of another format than declared, and is read no further. */
  mostlyMalformed: 10_000,
  /** Control totals of one file: one for each batch, day and currency of a year. */
  totals: 10_000,
  /** Accounts that a file names and that are compared with its own. */
  namedAccounts: 16,
} as const;

/** Of what operators decide about imports. */
export const DECISION_LIMITS = {
  /** How long a decision waits for the import's row: an attempt writes its progress within milliseconds, and its lines within minutes. */
  lockWaitMs: 1_000,
  retryMs: 5_000,
} as const;

export const WITHDRAWAL_LIMITS = {
  /** How long the answer waits for the end: a file of a month is taken back by then. */
  answerMs: 2_000,
  /** How long the first attempt waits for the account. */
  firstMs: 1_000,
  /** How long a withdrawal that was left waits for its account when it is tried: the next one may have a free account. */
  tryMs: 50,
  /** How often those that were left are tried: a person sees the status change. */
  triesMs: 1_000,
  /** How long one waits for its turn: runs and imports that follow one another leave no moment to one that is only tried. */
  turnMs: 10_000,
  /** How often those that were left wait for their turn: most are carried out when they are tried. */
  turnsMs: 5_000,
} as const;

/** Of mappings, their previews and their tests. */
export const MAPPING_LIMITS = {
  /** Versions of all mappings of an organization: a chain has a few dozen kinds of files. */
  mappings: 2_000,
  /** Tests that one process carries out at once: each parses as fast as it can, and requests wait meanwhile. */
  testsAtOnce: 4,
  testRetryMs: 5_000,
  /** How long the answer to a test waits for its end: within the time of a call, and a file of a month is read by then. */
  testAnswerMs: 2_000,
  /** How often a test stores how far it is, and after which silence its process has ended. */
  testProgressMs: 1_000,
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
  /** Of a closing with so many lines each page of its export sorts all of them: a few milliseconds. */
  sortedLines: 10_000,
  /** How far apart the first and the last day of one list are: two months of days, two years of months. */
  days: { day: 62, month: 732 },
} as const;

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
  /**
   * Payouts of an account that may have arrived together, or credits of a day that may be parts of one payout. All their sums
   * are compared, 256 at most: a provider pays out once a day, and the days of candidates are seven. Of more, sums are equal by
   * chance too often.
   */
  groupedParts: 8,
  /** Of a line, the best ones; a person chooses among these. */
  listedCandidates: 10,
  /** Rows of one file that become issues of their own; with more, the file is wrong as a whole. */
  malformedOfImport: 10_000,
  /** A terminal belongs to a station by this many exact matches, with this share of them: fewer say too little. */
  terminalMatches: 5,
  terminalShare: 0.9,
  /** Slip numbers of at most so many characters come again within days (ISO 8583, fields 11 and 38). */
  shortReferenceCharacters: 6,
  /** Of a word in a text that can be a reference. */
  shortestWord: 4,
  /** The days of one run: ten years with their leap days, the longest that books are kept. */
  daysOfRun: 3_653,
  /** Memory of one hash join or sort; a million rows of keys fit. */
  workMemoryMiB: 96,
  /** Runs that people have started in one process: each keeps a connection, and a processor of PostgreSQL busy. */
  runsAtOnce: 2,
  /** How long a person's request waits for another run of the account: within the time of a call. */
  turnMs: 3_000,
  turnPollMs: 100,
  /** How long a service that stops waits for the work that it has cancelled; what PostgreSQL does not end by then is cut off. */
  stopMs: 1_000,
  /** An account's run starts when no import of it has ended for this long: imports often come together. */
  quietMs: 500,
  /** A run starts all the same when it has waited this long. */
  longestWaitMs: 60_000,
  /**
   * An account without an import follows those of others, because they share payments: with many accounts, files that come one
   * after another would start runs of all of them each time.
   */
  followerQuietMs: 2_000,
  followerLongestWaitMs: 600_000,
  /** Before a run that has failed starts again by itself, times its failures. */
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
