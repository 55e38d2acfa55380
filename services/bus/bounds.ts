/**
 * The bounds of what people and devices may write, each with its reason. They are part of the operations on the bus: the
 * gateway's contract refuses what is beyond them by field, and the services check them again.
 */
import { INTENT_LIFETIME_BOUNDS_MS, LEASE_LIFETIME_BOUNDS_MS, STATE_LIMITS } from "../../machines/settings.ts";

export const BOUNDS = {
  /** The name of a place, a device, a person or an order's line: it fits a screen's heading and a column of a list. */
  nameCharacters: 200,
  /** A launch reference is a URI; it is part of the station's state, of which a commit holds sixteen at most. */
  handoffTargetCharacters: 500,
  /** The longest e-mail address that mail can be sent to: a path of 256 with its brackets (RFC 5321, 4.5.3.1.3). */
  emailCharacters: 254,
  /** Shorter than this can be guessed; longer than the most only costs hashing (NIST SP 800-63B asks for 64 at least). */
  passwordCharacters: { min: 12, max: 1_000 },
  /** People whom one browser is known by at a log-in: the cashiers of a station's shifts. */
  browserTokens: 8,
  /** 128 random bits are 22 characters; a longer text is no token of ours. */
  browserTokenCharacters: 64,
  /** What the link of a start has behind `#`: 256 random bits with a prefix are 47 characters; a longer text is no token of ours. */
  loginLinkCharacters: 200,
  /** A person who has not logged in in a browser for this long is no longer known there. */
  knownBrowserDays: 90,
  /** A currency by its ISO 4217 code. */
  currencyCharacters: 3,
  /** A program passes a code on within seconds, and one that was forgotten in a drawer must have ended. */
  enrollmentCodeLifetimeMs: { min: 10_000, max: 7 * 24 * 3_600_000 },

  /** Lines of one order: a long table's bill; the order with its lines stays well within one bus message. */
  orderLines: 200,
  /** Pieces of one line: four digits, as a till has them. */
  lineQuantity: 9_999,
  /** Digits of an amount in minor units: the contract's ten before the point, and the three decimals of some currencies. */
  amountMinorDigits: 13,
  /** Things in one page of a list, whatever they are: enough that a thousand take two requests. */
  listed: 500,
  /** Things on a page when the request names no limit: a screenful or two. */
  listedUnlessAsked: 100,
  /**
   * A page as JSON, except that it has one thing at least: well within one bus message (1 MB), and less than a gateway keeps
   * for a client that does not read (256 KB). A page of a hundred things has some 50 KB.
   */
  listedBytes: 224 * 1_024,

  /** How long a lease may last without a renewal, as the machine has it. */
  leaseLifetimeMs: LEASE_LIFETIME_BOUNDS_MS,
  /** Ended sessions in one command to a station: as many as one person may have open. */
  endedSessions: STATE_LIMITS.endedSessions,
  /** How long a collection may be open, as the machine has it. */
  intentLifetimeMs: INTENT_LIFETIME_BOUNDS_MS,
  /** What a person searches for: longer than what distinguishes two references. */
  searchCharacters: 100,
  /** Why a person did something, or what else there is to say of a place: a few sentences. */
  reasonCharacters: 500,
  /**
   * Issues that one request closes by a filter. Each one of provider money takes locks of its own, some milliseconds; all
   * together stay within the time that a person's request has.
   */
  issuesClosedAtOnce: 500,
  /** Lines or payments of one match that a person confirms: a payout of a month's weeks, or a bill that was split. */
  matchedTogether: 50,
  /** What names a payment in a match: its source, a provider's reference with its prefix, and an id. */
  paymentKeyCharacters: 1_000,
  /** The name of a time zone: the longest of the IANA database has half as many. */
  timeZoneCharacters: 64,
  /** The hours of a day, from 0 on. */
  hourOfDay: 23,
  /** Minutes after midnight, to the last one of a day. */
  minuteOfDay: 24 * 60 - 1,
  /** How long an old secret may be taken beside the new one. */
  secretOverlapMs: 7 * 24 * 3_600_000,
  /** How long an offer to a robot may stand: it needs seconds to be read, and food is cold after an hour. */
  offerLifetimeMs: { min: 5_000, max: 3_600_000 },
  /** The address of a webhook target: what browsers, proxies and servers take at least, and no fleet needs as much. */
  webhookUrlCharacters: 2_048,
  /** An idempotency key, a person's or a device's: four UUIDs fit, and an index entry with it stays small. */
  idempotencyKeyCharacters: 255,
  /** A command's id: its kind, a few ids and a SHA-256; it is stored with each command's answer. */
  commandIdCharacters: 200,
  /** `machines/digest.ts` writes eleven. */
  digestCharacters: 16,
  /** Any text in a station's command: longer than anything a person types, and a commit stays small (design §2.1). */
  stationTextCharacters: 1_000,
  /**
   * A device's reference or code, which are evidence and kept verbatim: as much as a request body of 16 KiB can hold. The
   * machine bounds how much of it a station's state keeps (`STATE_LIMITS`).
   */
  reportTextCharacters: 16 * 1_024,
} as const;

/** An amount in minor units on the bus: digits only. */
export const AMOUNT_MINOR_PATTERN = new RegExp(`^\\d{1,${BOUNDS.amountMinorDigits}}$`);
/** Of a statement's line, which has up to 18 digits and may take money away, or of the sum of a million of them. */
export const SIGNED_AMOUNT_MINOR_PATTERN = /^-?\d{1,24}$/;
