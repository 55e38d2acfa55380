import { BOUNDS } from "../bus/bounds.ts";

/** Every limit of the registry, with its reason. */
export const REGISTRY_LIMITS = {
  /** How long a request waits for the relay to deliver what it wrote; after that its answer says that it is undelivered. */
  flushTimeoutMs: 1_000,
  /** Longer than a shift, so that no session expires during one. */
  sessionLifetimeMs: 12 * 3_600_000,
  /** Open sessions of one user; a further log-in ends the oldest, so that a looping script cannot fill the bucket. */
  sessionsPerUser: BOUNDS.endedSessions,
  /** Stations whose lease one session may take: each is notified when the session ends, in one transaction. */
  stationsPerSession: 50,
  /** Ended sessions are kept this long, to show who was logged in when. */
  endedSessionRetentionDays: 30,
  /** How often the retention job of each process runs, and how many rows one statement deletes. */
  retention: { everyMs: 3_600_000, rowsPerBatch: 1_000 },
  /** Time enough to walk to the device and type ten characters (design §4, "enrollment code"). */
  enrollmentCodeLifetimeMs: 15 * 60_000,
  /** Of the link that a start prints: time to read the screen, and too short for one that is found later. */
  loginLinkLifetimeMs: 15 * 60_000,
  /** A day for the person who tries the service; each start issues a fresh one. */
  sandboxCodeLifetimeMs: 24 * 3_600_000,
  /** A longer text is no code; a real one has ten characters and a hyphen. */
  enrollmentCodeInputLength: 64,
  /** Filials of one organization: no chain has as many, and a looping script is stopped while counting is still cheap. */
  filials: 10_000,
  /** Items of one catalogue: a till shows a screenful or two, and no menu has as many. */
  catalogueItems: 2_000,
  /** Sandboxes of one organization: a team's people and machines have one each, and a looping script is stopped. */
  sandboxes: 100,
  /** Of a sandbox's cashier, in random bytes: shown once, and copied, not typed. */
  sandboxPasswordBytes: 15,
  /** Runs of the conformance suite that owners start. */
  conformanceRun: {
    /** Each takes some 20 s of CPU and 100 MB. */
    atOnce: 2,
    /** When a run that got no place may be started again. */
    retryMs: 30_000,
    /** The runs of one organization that can be read; older ones are deleted. */
    kept: 100,
    /** How often what has come is stored, and how long a run is believed whose process stores nothing. */
    tickMs: 1_000,
    leaseMs: 10_000,
    /** A run takes a minute; one that hangs is asked to end, and killed when it has not cleaned up in time. */
    mostMs: 5 * 60_000,
    cleanUpMs: 90_000,
    /** Of its session, which it ends itself: longer than a run may take. */
    sessionLifetimeMs: 10 * 60_000,
    /** Of what the suite writes about why it could not run: a sentence. */
    problemCharacters: 1_000,
  },
  /** Certification artifacts. */
  certification: {
    /** As long as an audit of a payment application lasts: after a year the device shows again what it can. */
    validMs: 365 * 24 * 3_600_000,
    /** A run is recorded by the program that made it, or by a person who has read its result. */
    recordWithinMs: 60 * 60_000,
    /** Of one organization: a maker of devices with a version a week has some hundred in a year. */
    artifacts: 10_000,
    /** Of the log, with the revocations: a proof reads all hashes, 3 MB, and computes for a tenth of a second. */
    leaves: 100_000,
  },
  /** Users of one organization, for the same reason. */
  users: 20_000,
  /**
   * Password checks that run at once in one process: each takes 19 MiB and some 30 ms of one core. One of Node's four
   * worker threads stays free for DNS and files. Of others one at once: wrong passwords from many addresses leave a core
   * of two to everything else. Each lane has places for no more checks than are done within a second.
   */
  passwordTurns: { checksAtOnce: 3, checksOfLane: { known: 2, others: 1 }, places: { known: 48, others: 8 } },
  /** When a person who got no place may try again: the earlier checks are done by then. */
  passwordRetryMs: 1_000,
  /**
   * Log-ins and enrollments: the share of the connections that each lane has, one at least; how much may wait for it, in all
   * and of one address or organization; and how long. A look-up takes a millisecond or two, and the caller waits for 5 s.
   */
  databaseShares: {
    of: { known: 0.3, lookUps: 0.2, others: 0.1 },
    waiting: 1_024,
    waitingPerParty: 64,
    maxWaitMs: 3_000,
  },
  /** Log-ins, and enrollments, that one process works on at once: most of them wait for their turns, which bound them. */
  anonymousRequestsInFlight: 2_048,
  /** Known addresses of one person: restaurants, a home and phones. A further one replaces the one used longest ago. */
  knownAddressesPerUser: 20,
  /** An address is no longer known when the person has not logged in from it for this long. */
  knownAddressDays: 90,
  /** Known browsers of one person. A further one replaces the one used longest ago. */
  knownBrowsersPerUser: 20,
} as const;

/** Log-in attempts, counted in PostgreSQL so that the limits hold over all processes. */
export const LOGIN_LIMITS = {
  /** One address, all accounts: a restaurant's whole staff behind one router still gets in. */
  perAddress: { attempts: 30, windowSeconds: 60 },
  /** One account from one address, or in one known browser: a person mistyping, or a program guessing. Success resets it. */
  perAccountAndAddress: { attempts: 10, windowSeconds: 900 },
  /** One account from all addresses that are not known: stops guesses from many of them. */
  perAccount: { attempts: 25, windowSeconds: 900 },
  /** One account from one known address or in one known browser, right or wrong: bounds a script that logs in again and again. */
  perKnownAddress: { attempts: 30, windowSeconds: 60 },
  /** One session, for the old password: a person mistyping, or a stranger who found a session open. */
  perSession: { attempts: 10, windowSeconds: 900 },
  /** An address with more attempts than this within its window is refused from memory: twice its limit. */
  writesPerAddress: 60,
} as const;
