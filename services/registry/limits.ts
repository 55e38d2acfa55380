import { BOUNDS } from "../bus/bounds.ts";

/** Every limit of the registry, with its reason. */
export const REGISTRY_LIMITS = {
  /** How long a request waits for the relay to deliver what it wrote; after that its answer says that it is undelivered. */
  flushTimeoutMs: 1_000,
  /** A working day and the hour after it: nobody is logged out in the middle of a shift. */
  sessionLifetimeMs: 12 * 3_600_000,
  /** Open sessions of one user; a further log-in ends the oldest, so that a looping script cannot fill the bucket. */
  sessionsPerUser: BOUNDS.endedSessions,
  /** Stations whose lease one session may take: each is notified when the session ends, in one transaction. */
  stationsPerSession: 50,
  /** Ended sessions stay this long for questions of who was logged in when. */
  endedSessionRetentionDays: 30,
  /** How often the retention job of each process runs, and how many rows one statement deletes. */
  retention: { everyMs: 3_600_000, rowsPerBatch: 1_000 },
  /** Time enough to walk to the device and type ten characters (design §4, "enrollment code"). */
  enrollmentCodeLifetimeMs: 15 * 60_000,
  /** A sandbox code may wait a day for whoever tries the service; each start issues a fresh one. */
  sandboxCodeLifetimeMs: 24 * 3_600_000,
  /** Characters of a claimed code that are looked at; a real one has ten and a hyphen. */
  enrollmentCodeInputLength: 64,
  /** Filials of one organization: no chain has as many, and a looping script is stopped while counting still is cheap. */
  filials: 10_000,
  /** Users of one organization, for the same reason. */
  users: 20_000,
  /**
   * Password checks at work at once in one process: each takes 19 MiB and some 30 ms of one core. One of Node's four worker
   * threads stays free for name look-ups and files. Of these, at most so many serve one lane (`PasswordTurns`).
   */
  passwordChecksAtOnce: 3,
  passwordChecksOfOneLane: 2,
  /** Password checks at work or waiting in one process, by lane: as many as are done within a second. */
  passwordPlaces: { known: 48, others: 16 },
  /** When a person who found no place may try again: those before are done by then. */
  passwordRetryMs: 1_000,
  /** Addresses that one person is known at: restaurants, a home and phones. A further one replaces the one used longest ago. */
  knownAddressesPerUser: 20,
  /** A person who has not logged in from an address for this long is no longer known there. */
  knownAddressDays: 90,
  /** Browsers that one person is known in. A further one replaces the one used longest ago. */
  knownBrowsersPerUser: 20,
} as const;

/** Log-in attempts, counted in PostgreSQL so that the limits hold over all processes. */
export const LOGIN_LIMITS = {
  /** One address, all accounts: a restaurant's whole staff behind one router still gets in. */
  perAddress: { attempts: 30, windowSeconds: 60 },
  /** One account from one address, or in one known browser: a person mistyping, or a program guessing. Success resets it. */
  perAccountAndAddress: { attempts: 10, windowSeconds: 900 },
  /** One account from all addresses that it is not known at: stops guessing from many of them. */
  perAccount: { attempts: 25, windowSeconds: 900 },
  /** One account at one address or in one browser that it is known at, right or wrong: bounds a script that logs in again and again. */
  perKnownAddress: { attempts: 30, windowSeconds: 60 },
  /** One session, to prove the old password: a person mistyping, or a person who found a session open. */
  perSession: { attempts: 10, windowSeconds: 900 },
  /** An address with more attempts than this within its window is refused from memory: twice its limit. */
  writesPerAddress: 60,
} as const;
