import { BOUNDS } from "../bus/bounds.ts";

/** Every limit of the registry, with its reason. */
export const REGISTRY_LIMITS = {
  /** How long a request waits for the relay to deliver its outbox rows. Then its answer reports them as undelivered. */
  flushTimeoutMs: 1_000,
  /** Longer than a shift, so that no session expires during one. */
  sessionLifetimeMs: 12 * 3_600_000,
  /**
   * A repetition still waits for the end of a session that a station has received within this time: longer than a
   * replica that answers can be behind.
   */
  sessionEndCountsMs: 5_000,
  /** Open sessions of one user. A further log-in ends the oldest one, so that a looping script cannot fill the bucket. */
  sessionsPerUser: BOUNDS.endedSessions,
  /** Stations whose lease one session may take. When the session ends, one transaction notifies all of them. */
  stationsPerSession: 50,
  /** Ended sessions are kept this long, to show who was logged in when. */
  endedSessionRetentionDays: 30,
  /** How long the idempotency keys of creations are kept: as long as those of a cashier's orders. */
  creationRetentionDays: 30,
  /** How often the retention job of each process runs, and how many rows one statement deletes. */
  retention: { everyMs: 3_600_000, rowsPerBatch: 1_000 },
  /** Enough time to walk to the device and type ten characters (design §4, "enrollment code"). */
  enrollmentCodeLifetimeMs: 15 * 60_000,
  /** The login link that a start prints: long enough to read the screen, and too short for a person who finds it later. */
  loginLinkLifetimeMs: 15 * 60_000,
  /** A day for the person who tries the service; each start issues a fresh one. */
  sandboxCodeLifetimeMs: 24 * 3_600_000,
  /** A longer text is not an enrollment code, which has ten characters and a hyphen. */
  enrollmentCodeInputLength: 64,
  /** Filials of one organization. No chain has so many, and the limit stops a looping script while counting is still cheap. */
  filials: 10_000,
  /** Items of one catalogue. A till shows one or two screens of them, and no menu has so many. */
  catalogueItems: 2_000,
  /** Sandboxes of one organization. Each person and each build machine of a team has one; the limit stops a looping script. */
  sandboxes: 100,
  /** Random bytes in the password of a sandbox's cashier. It is shown once, and a person copies it, so it may be long. */
  sandboxPasswordBytes: 15,
  /** Runs of the conformance suite that owners start. */
  conformanceRun: {
    /** Each run takes about 20 s of CPU and 100 MB. */
    atOnce: 2,
    /** After this time an owner may start a run again that was refused because too many ran. */
    retryMs: 30_000,
    /** Runs that are kept for one organization; older ones are deleted. */
    kept: 100,
    /** How often new results are stored, and how long a run counts as alive when its process stores nothing. */
    tickMs: 1_000,
    leaseMs: 10_000,
    /** How often a process tries to store the end of a run, a tick apart, while the database does not answer. */
    endAttempts: 60,
    /** A run takes a minute. A run that hangs is asked to end, and is killed when it does not clean up in time. */
    mostMs: 5 * 60_000,
    cleanUpMs: 90_000,
    /** The run's session, which the run itself ends: longer than a run may take. */
    sessionLifetimeMs: 10 * 60_000,
    /** The sentence in which the suite writes why it could not run. */
    problemCharacters: 1_000,
  },
  /** Certification artifacts. */
  certification: {
    /** How long an artifact is valid: as long as an audit of a payment application. Then the maker certifies again. */
    validMs: 365 * 24 * 3_600_000,
    /** A result must be recorded this soon after its run: enough for a program, and for a person who reads the result first. */
    recordWithinMs: 60 * 60_000,
    /** Artifacts of one organization. A maker of devices who publishes a version each week needs a few hundred in a year. */
    artifacts: 10_000,
    /** Leaves of the log, revocations included. A proof reads all hashes (3 MB) and computes for 0.1 s. */
    leaves: 100_000,
  },
  /** Active users of one organization. No chain has so many. */
  users: 20_000,
  /**
   * Password checks that run at once in one process. Each takes 19 MiB and about 30 ms of one core. One of Node's four
   * worker threads stays free for DNS and files. Callers who are not known get one check at a time, so that wrong passwords
   * from many addresses leave one of two cores to everything else. A lane queues as many checks as finish within a second.
   */
  passwordTurns: { checksAtOnce: 3, checksOfLane: { known: 2, others: 1 }, places: { known: 48, others: 8 } },
  /** After this time a person who found the lane full may try again: by then its checks are done. */
  passwordRetryMs: 1_000,
  /**
   * The database connections for log-ins and enrollments: the share of each lane (at least one connection). Then how
   * many requests may wait for a lane, in total and of one address or organization, and how long. A look-up takes 1 to
   * 2 ms, and the caller waits for at most 5 s.
   */
  databaseShares: {
    of: { known: 0.3, lookUps: 0.2, others: 0.1 },
    waiting: 1_024,
    waitingPerParty: 64,
    maxWaitMs: 3_000,
  },
  /** Log-ins and enrollments that one process accepts at once. Most of them wait for a turn in one of the lanes above. */
  anonymousRequestsInFlight: 2_048,
  /** Known addresses of one person: restaurants, a home and phones. A further address replaces the one used longest ago. */
  knownAddressesPerUser: 20,
  /** An address is no longer known when the person has not logged in from it for this long. */
  knownAddressDays: 90,
  /** Known browsers of one person. A further browser replaces the one used longest ago. */
  knownBrowsersPerUser: 20,
} as const;

/** Log-in attempts, counted in PostgreSQL so that the limits hold over all processes. */
export const LOGIN_LIMITS = {
  /** One address, all accounts: the whole staff of a restaurant behind one router can still log in. */
  perAddress: { attempts: 30, windowSeconds: 60 },
  /** One account from one address, or in one known browser: a person mistyping, or a program guessing. Success resets it. */
  perAccountAndAddress: { attempts: 10, windowSeconds: 900 },
  /** One account from all addresses that are not known: stops guesses from many of them. */
  perAccount: { attempts: 25, windowSeconds: 900 },
  /** One account from one known address or in one known browser, right or wrong: bounds a script that logs in again and again. */
  perKnownAddress: { attempts: 30, windowSeconds: 60 },
  /** One session that asks for the old password: a person mistyping, or a stranger who found an open session. */
  perSession: { attempts: 10, windowSeconds: 900 },
  /** An address with more attempts than this within its window is refused without a write to the database: twice its limit. */
  writesPerAddress: 60,
} as const;
