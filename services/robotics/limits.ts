/** Every limit, wait and retry of the robotics service, with its reason. */
export const ROBOTICS_LIMITS = {
  /** Tasks of one consumer that are offered or accepted: no fleet at one filial carries as many at once. */
  openTasks: 500,
  /** How soon an offer that was refused for that is worth repeating: a robot is under way for minutes. */
  openTasksRetryMs: 5_000,
  /** Consumers of one filial: a pause and each event concern them all. */
  consumersPerFilial: 50,
  /** Random bytes of a credential: nobody guesses 256 bits, so that its SHA-256 needs neither salt nor stretching. */
  credentialBytes: 32,
  /** How often offers are looked for whose time is over: their consumers hear of it within a second. */
  expiryIntervalMs: 250,
  /** Offers that one transaction expires: a few hundred short statements, well within its deadline. */
  offersPerTurn: 50,
  /** Transactions of one look; what is left is taken up at the next, so that a stopping process need not wait for all. */
  turnsPerLook: 20,
  /** How often the retention job runs, and how many tasks one statement deletes. */
  retention: { everyMs: 3_600_000, rowsPerBatch: 1_000 },
  /** A figure that PostgreSQL does not give within this is told as unknown. */
  figureMs: 400,
  /** How long the relay may take to say that it has delivered; nobody waits for it. */
  flushTimeoutMs: 4_000,
} as const;
