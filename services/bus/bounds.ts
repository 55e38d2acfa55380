/**
 * The bounds of what people and devices may write, each with its reason. They are part of the operations on the bus.
 * The gateway refuses a value beyond its bound and names the field; the services check the bounds again.
 */
import { INTENT_LIFETIME_BOUNDS_MS, LEASE_LIFETIME_BOUNDS_MS, STATE_LIMITS } from "../../machines/settings.ts";

export const BOUNDS = {
  /** The name of a place, a device, a person or an order line: it fits a screen's heading and a column of a list. */
  nameCharacters: 200,
  /** A launch reference is a URI. The station's state has one for each of its devices, sixteen at most. */
  handoffTargetCharacters: 500,
  /** The longest e-mail address that mail can be sent to: a path of 256 with its brackets (RFC 5321, 4.5.3.1.3). */
  emailCharacters: 254,
  /**
   * A shorter password can be guessed; a longer one only costs hashing. NIST SP 800-63B asks for a maximum of 64 at
   * least.
   */
  passwordCharacters: { min: 12, max: 1_000 },
  /**
   * Browser tokens in one log-in: one for each person who uses the browser, such as the cashiers of a station's shifts.
   */
  browserTokens: 8,
  /** A browser token is 128 random bits in 22 characters. A longer text is not such a token. */
  browserTokenCharacters: 64,
  /**
   * The token behind `#` in the log-in link that a start prints: 256 random bits with a prefix in 47 characters. A
   * longer text is not such a token.
   */
  loginLinkCharacters: 200,
  /** A browser no longer counts as known when the person has not logged in there for this long. */
  knownBrowserDays: 90,
  /** A currency by its ISO 4217 code. */
  currencyCharacters: 3,
  /**
   * The minimum is for a program, which uses a code within seconds. The maximum is for a code that a person wrote down
   * and forgot.
   */
  enrollmentCodeLifetimeMs: { min: 10_000, max: 7 * 24 * 3_600_000 },

  /** Lines of one order: the bill of a large table. The order with its lines stays well within one bus message. */
  orderLines: 200,
  /** Pieces of one order line: four digits, as cash registers have. */
  lineQuantity: 9_999,
  /** Digits of an amount in minor units: the contract's ten before the point, and the three decimals of some currencies. */
  amountMinorDigits: 13,
  /** Items in one page of any list: two requests read a thousand items. */
  listed: 500,
  /** Items in a page when the request has no `limit`: one or two screens. */
  listedUnlessAsked: 100,
  /**
   * The size of a page as JSON; a page has one item at least, whatever its size. It fits into one bus message (1 MB),
   * and into what a gateway buffers for a client that does not read (256 KB). A page of a hundred items has about 50
   * KB.
   */
  listedBytes: 224 * 1_024,

  /** How long a lease may last without a renewal. The state machine has the same bounds. */
  leaseLifetimeMs: LEASE_LIFETIME_BOUNDS_MS,
  /** Ended sessions in one command to a station: as many as one person may have. */
  endedSessions: STATE_LIMITS.endedSessions,
  /** How long a collection may be open. The state machine has the same bounds. */
  intentLifetimeMs: INTENT_LIFETIME_BOUNDS_MS,
  /** A search text: longer than the part in which two references differ. */
  searchCharacters: 100,
  /** A person's reason for an action, or a note about a place: a few sentences. */
  reasonCharacters: 500,
  /**
   * Issues that one request closes by a filter, or reopens. An issue about a provider payment needs separate locks, for
   * some milliseconds. All together stay within the time-out of a person's request.
   */
  issuesClosedAtOnce: 500,
  /**
   * Lines or payments of one match that a person confirms: for example the weekly payouts of a month, or a split bill.
   */
  matchedTogether: 50,
  /** A payment key in a match: its source, a provider's reference with its prefix, and an id. */
  paymentKeyCharacters: 1_000,
  /** The name of a time zone: the longest name in the IANA database has half as many characters. */
  timeZoneCharacters: 64,
  /** The last hour of a day; the first is 0. */
  hourOfDay: 23,
  /** The last minute of a day, in minutes after midnight. */
  minuteOfDay: 24 * 60 - 1,
  /** How long an old secret may be valid beside the new one. */
  secretOverlapMs: 7 * 24 * 3_600_000,
  /** How long an offer to a robot may be valid: the robot needs seconds to read it, and food is cold after an hour. */
  offerLifetimeMs: { min: 5_000, max: 3_600_000 },
  /**
   * The address of a webhook target: all common proxies and servers accept this length, and targets are much shorter.
   */
  webhookUrlCharacters: 2_048,
  /** An idempotency key of a person or a device: four UUIDs fit, and an index entry with the key stays small. */
  idempotencyKeyCharacters: 255,
  /** A command's id: its kind, a few ids and a SHA-256. The station stores it with the answer to the command. */
  commandIdCharacters: 200,
  /** A state digest: `machines/digest.ts` writes eleven characters. */
  digestCharacters: 16,
  /** Any text in a station's command: longer than anything a person types, and a commit stays small (design §2.1). */
  stationTextCharacters: 1_000,
  /**
   * A device's reference or code, which is evidence and is stored unchanged: as much as a request body of 16 KiB can
   * hold. The state machine bounds how much of it a station's state keeps (`STATE_LIMITS`).
   */
  reportTextCharacters: 16 * 1_024,
} as const;
