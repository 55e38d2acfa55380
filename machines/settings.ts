/** The settings of the machines that an operator may change, in milliseconds. */
export interface MachineSettings {
  /** How long a payment intent stays collectable when its creator sets no deadline. */
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
  /** A shorter lease would end while a cashier hesitates. */
  min: 30_000,
  /** The longest time for which a cashier who left without signing out blocks the station. */
  max: 3_600_000,
} as const;

/** How long a station refuses an ended session. The host drops a request some seconds after its deadline, long before this. */
export const ENDED_SESSION_KEPT_MS = 60_000;

/** A display shows `paid` for this long after success (design §4, "display"). */
export const PAID_SHOWN_MS = 8_000;

/** The bus clock moves back by milliseconds when a process measures it again. More than this means that it was set back. */
export const SET_BACK_MS = 1_000;

/** Bounds of a station's committed state, so that one commit stays small (design §2.1). */
export const STATE_LIMITS = {
  /** Devices of one station: a station is one counter. */
  devices: 16,
  /** Ended intents kept for late reports and the cashier's screen. Older ones are in the payment seam's database. */
  endedIntents: 8,
  /** Command replies kept for repetitions. The station recognises the repetition of an older command by its intent. */
  replies: 16,
  /** Reports kept with the active intent. A device may report once a second, and the audit log has all its reports. */
  activeReports: 8,
  /** Reports kept with an ended intent: a companion that got no answer repeats one of its newest. The audit log has all. */
  endedReports: 4,
  /**
   * Reports of an intent of which the state keeps only the command and the outcome, so that the station recognises a
   * repetition. A companion reports this many in half a minute, at one report a second.
   */
  formerReports: 32,
  /**
   * Characters of references and codes beside the newest: this many for the older reports of the active intent, and this many
   * for the older ended intents. A device's text may be as long as a request. Sixteen of the longest real texts fit, and the
   * audit log has the rest.
   */
  olderReportText: 4_096,
  /** Open orders besides the shown one. A station with more shows a forgotten order again when it changes. */
  waitingOrders: 8,
  /**
   * Orders whose newest revision the state keeps, so that the station recognises an older description that arrives late. Paid
   * and voided orders of collections in the state come in addition, one for each collection at most.
   */
  knownOrders: 8,
  /**
   * Reasons why money may have moved without being settled. A reason ends when the order is paid or voided, or when the
   * provider reports that no money moved. At the bound the weakest reason leaves the state. The station keeps only the highest
   * order id of these: every order up to it then needs a confirmation.
   */
  unclearCollections: 16,
  /**
   * QR intents whose unpaid end the providers service has not acknowledged yet. At the bound the oldest leaves the state, and
   * the providers service finds its end with a poll after the deadline.
   */
  unreportedEnds: 16,
  /** Characters of a QR payload: an EMVCo payload has at most 512, and a phone cannot scan a longer one than this. */
  qrPayloadCharacters: 1_024,
  /** Collections that have left the state and may have moved money. With `endedIntents`, as many as a person can follow up. */
  olderReasons: 16,
  /** Intents whose late evidence the state remembers, so that it keeps the same report once: twice the `endedIntents`. */
  lateEvidenceIntents: 16,
  /**
   * Different reports kept of one intent after its end or from a blocked device: this many each of successes, unknown outcomes
   * and others. A device may report once a second for ever, and a person can check only a few reports. The station keeps a
   * further success only when the cashier must confirm again because of it, so at most one for each confirmation.
   */
  lateEvidencePerIntent: 4,
  /** Ended sessions that the state keeps for a minute: as many as one person may have open. */
  endedSessions: 20,
  /** Revoked devices that the state keeps, so that a description from before the revocation does not add one again. */
  revokedDevices: 16,
} as const;
