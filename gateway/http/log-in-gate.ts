/**
 * Bounds the log-ins that the gateway forwards to the registry. The registry counts the attempts of all processes and decides.
 * The gateway protects the bus and the database from a flood.
 *
 *   known place   the account has logged in from this address or in this browser before. These log-ins have separate slots
 *   other place   counted by address. Attempts with a browser's tokens have a separate count, so that attempts without tokens
 *                 cannot throttle a person in a known browser. The first two attempts of an address have separate slots, so
 *                 that a person at a place that the gateway has forgotten does not wait behind a flood
 *
 * An attempt that gets no place, here or at the registry, counts for no limit. It does count as one of an address's first two:
 * a flood that gets no place must not use the slots of first attempts for ever.
 *
 * A place that the gateway remembers grants no access. The registry stores the places, so it knows them after a restart of the
 * gateway too.
 */
import { hash } from "node:crypto";
import { addressBlock } from "../../services/bus/address-block.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { FairSlots } from "../../services/runtime/fair-slots.ts";
import { LIMITS } from "../limits.ts";
import {
  AddressThrottle,
  CredentialThrottle,
  FIRST_LOG_INS,
  LOG_IN_RATE,
  MAX_PLACES,
} from "../read-model/throttles.ts";

interface LogInAttempt {
  readonly email: string;
  readonly address: string;
  readonly browserTokens: readonly string[];
}

/** The attempts at places that are not known, by address. */
interface UnknownPlaces {
  /** Those that the registry has refused. */
  readonly refused: AddressThrottle;
  /** All but those that have succeeded. */
  readonly all: AddressThrottle;
}

const unknownPlaces = (): UnknownPlaces => ({
  refused: new AddressThrottle(LOG_IN_RATE),
  all: new AddressThrottle(LOG_IN_RATE),
});

export class LogInGate {
  readonly #nowMs: () => number;
  readonly #slots = {
    known: new FairSlots<string>(LIMITS.logIns.known),
    first: new FairSlots<string>(LIMITS.logIns.first),
    others: new FairSlots<string>(LIMITS.logIns.others),
  };
  readonly #knownPlaces = new CredentialThrottle(LOG_IN_RATE, MAX_PLACES);
  readonly #addresses = unknownPlaces();
  readonly #addressesOfBrowsers = unknownPlaces();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get throttledCount(): number {
    const { throttledCount } = this.#knownPlaces;
    return throttledCount + this.#addresses.refused.throttledCount + this.#addressesOfBrowsers.refused.throttledCount;
  }

  /** Runs `logIn` when the gateway may forward the attempt. Throws `login_throttled` or `busy`. */
  async run<T extends { readonly browserToken: string }>(attempt: LogInAttempt, logIn: () => Promise<T>): Promise<T> {
    const { email, address, browserTokens } = attempt;
    const block = addressBlock(address);
    const placeKey = (place: string): string => hash("sha256", `${email.trim().toLowerCase()}\n${place}`, "base64url");
    const { known: knownSlots, first, others } = this.#slots;
    const known = [...browserTokens, block].map(placeKey).find((key) => this.#knownPlaces.knows(key));
    const { refused, all } = browserTokens.length > 0 ? this.#addressesOfBrowsers : this.#addresses;
    const nowMs = this.#nowMs();
    const unknownSlots = all.lacksAtMost(address, nowMs, FIRST_LOG_INS - 1) ? first : others;
    const waitMs = known === undefined ? refused.take(address, nowMs) : this.#knownPlaces.take(known, nowMs);
    if (waitMs > 0) throw new RefusedError({ code: "login_throttled", retryAfterMs: waitMs });
    if (known === undefined) all.take(address, nowMs);
    const slots = known === undefined ? unknownSlots : knownSlots;
    const release = await slots.acquire(known ?? block, LIMITS.logIns.maxWaitMs);
    try {
      if (release === undefined) throw new RefusedError({ code: "busy", retryAfterMs: LIMITS.logIns.maxWaitMs });
      const reply = await logIn();
      if (known === undefined) for (const counted of [refused, all]) counted.giveBack(address);
      for (const key of [reply.browserToken, block].map(placeKey)) {
        if (!this.#knownPlaces.knows(key)) this.#knownPlaces.take(key, this.#nowMs());
      }
      return reply;
    } catch (error) {
      if (!isVerdict(error)) {
        if (known === undefined) refused.giveBack(address);
        else this.#knownPlaces.giveBack(known);
      }
      throw error;
    } finally {
      release?.();
    }
  }
}

/** Whether the registry has refused the attempt, and not only had no place or no answer for it. */
function isVerdict(error: unknown): boolean {
  return error instanceof RefusedError && error.refusal.code !== "busy" && error.refusal.code !== "unavailable";
}
