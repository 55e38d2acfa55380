/** What an operator may set about the machines. Milliseconds throughout; defaults are those of the design, §4. */
export interface MachineSettings {
  /** How long a payment intent stays collectable when its creator names no deadline. */
  readonly intentLifetimeMs: number;
  /** Silence after which a device counts as offline. */
  readonly deviceSilenceMs: number;
  /** How long a cashier's station lease lasts without a renewal. */
  readonly leaseLifetimeMs: number;
}

export const DEFAULT_MACHINE_SETTINGS: MachineSettings = {
  intentLifetimeMs: 180_000,
  deviceSilenceMs: 25_000,
  leaseLifetimeMs: 15 * 60_000,
};

/** The bounds of a deadline that a cashier may ask for (design §4, "deadline"). */
export const INTENT_LIFETIME_BOUNDS_MS = { min: 30_000, max: 30 * 60_000 } as const;

/** The bounds of a station lease, the setting's default included. */
export const LEASE_LIFETIME_BOUNDS_MS = {
  /** Half a minute is one hesitation. */
  min: 30_000,
  /** A cashier who left without signing out blocks the station no longer than this. */
  max: 3_600_000,
} as const;

/** How long a station refuses an ended session: a request is dropped some seconds after its deadline, long before this. */
export const ENDED_SESSION_KEPT_MS = 60_000;

/** A display shows `paid` for this long after success (design §4, "display"). */
export const PAID_SHOWN_MS = 8_000;

/** Bounds of a station's committed state, so that one commit stays small (design §2.1). */
export const STATE_LIMITS = {
  /** Devices of one station; a station is one counter, not a fleet. */
  devices: 16,
  /** Ended intents kept for late reports and the cashier's screen; older ones are in the payment seam's database. */
  endedIntents: 8,
  /** Command replies kept for repetitions; older ones are known by their intents. */
  replies: 16,
  /** Reports kept with the active intent; a device may report at most once a second, all of them are in the audit log. */
  activeReports: 8,
  /**
   * Reports kept with an ended intent, the newest: a companion that got no answer repeats one of the last. All of them are in
   * the audit log.
   */
  endedReports: 4,
  /**
   * Reports of an intent of which only the command and the outcome are kept, so that a repetition is known as one: what a
   * companion reports within half a minute, at one report a second.
   */
  formerReports: 32,
  /**
   * Characters of references and codes that a state keeps beside the newest: of the older reports of the active intent and
   * of the older ended intents, this many each. A device's text is evidence, as long as a request may be; sixteen of the
   * longest real ones fit, and what does not is in the audit log.
   */
  olderReportText: 4_096,
  /** Open orders that wait behind the one that is shown; a station with more shows them again when they are changed. */
  waitingOrders: 8,
  /** Orders whose newest revision is remembered, so that an older description that arrives late is known as such. */
  knownOrders: 8,
  /**
   * Orders for which money may have moved without being settled: each is cleared by payment, void or the provider's word.
   * Of those that are pushed out, the weakest first, only the highest order is kept, up to which every order asks.
   */
  unclearCollections: 16,
  /**
   * QR intents that have ended unpaid without the providers service having taken note yet. Its poll after the deadline
   * finds those that are pushed out, whose deadlines are the oldest.
   */
  unreportedEnds: 16,
  /** Characters of a QR payload: a payload in EMVCo form ends at 512; what a phone cannot scan from a counter is no use longer. */
  qrPayloadCharacters: 1_024,
  /** Collections that have left the state and may have moved money: with `endedIntents` as many as a person can follow up. */
  olderReasons: 16,
  /** Intents of which late evidence is remembered, so that the same report is not kept twice: all that a state knows, twice over. */
  lateEvidenceIntents: 16,
  /**
   * Different reports kept of one intent after its end or from a blocked device: as many successes, unknown outcomes and
   * others each. A device may report once a second for ever; four contents are a person's work already. A further success is
   * kept where it makes the cashier confirm again, so there is one at most for each confirmation.
   */
  lateEvidencePerIntent: 4,
  /** Ended sessions remembered for a minute: as many as one person may have open. */
  endedSessions: 20,
  /** Revoked devices remembered, so that a description from before the revocation does not bring one back. */
  revokedDevices: 16,
} as const;
