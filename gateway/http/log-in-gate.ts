/**
 * Which log-ins the gateway passes on to the registry, and how many at once. The registry counts attempts over all processes
 * and decides; the gateway keeps a flood away from the bus and from the database.
 *
 *   known place   the account has logged in here before, from this address or in this browser: slots of its own
 *   other place   counted by address. Attempts that carry a browser's tokens are counted apart: attempts without them must
 *                 not use up what a person in a known browser needs. The first two of an address have slots of their own,
 *                 so that a person at a place that the gateway has forgotten comes before a flood
 *
 * What the gateway remembers of places grants nothing: the registry knows them for certain, also after a restart of the
 * gateway.
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

export interface LogInAttempt {
  readonly email: string;
  readonly address: string;
  readonly browserTokens: readonly string[];
}

export class LogInGate {
  readonly #nowMs: () => number;
  readonly #slots = {
    known: new FairSlots<string>(LIMITS.logIns.known),
    first: new FairSlots<string>(LIMITS.logIns.first),
    others: new FairSlots<string>(LIMITS.logIns.others),
  };
  readonly #knownPlaces = new CredentialThrottle(LOG_IN_RATE, MAX_PLACES);
  readonly #addresses = new AddressThrottle(LOG_IN_RATE);
  readonly #addressesOfBrowsers = new AddressThrottle(LOG_IN_RATE);

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Log-ins that were throttled so far. */
  get throttledCount(): number {
    const { throttledCount } = this.#knownPlaces;
    return throttledCount + this.#addresses.throttledCount + this.#addressesOfBrowsers.throttledCount;
  }

  /** Runs `logIn` when the attempt may be passed on. Throws `login_throttled` or `busy`. */
  async run<T extends { readonly browserToken: string }>(attempt: LogInAttempt, logIn: () => Promise<T>): Promise<T> {
    const { email, address, browserTokens } = attempt;
    const block = addressBlock(address);
    const placeKey = (place: string): string => hash("sha256", `${email.trim().toLowerCase()}\n${place}`, "base64url");
    const { known: knownSlots, first, others } = this.#slots;
    const known = [...browserTokens, block].map(placeKey).find((key) => this.#knownPlaces.knows(key));
    const unknownPlaces = browserTokens.length > 0 ? this.#addressesOfBrowsers : this.#addresses;
    const nowMs = this.#nowMs();
    const unknownSlots = unknownPlaces.isFull(address, nowMs, FIRST_LOG_INS - 1) ? first : others;
    const waitMs = known === undefined ? unknownPlaces.take(address, nowMs) : this.#knownPlaces.take(known, nowMs);
    if (waitMs > 0) throw new RefusedError({ code: "login_throttled", retryAfterMs: waitMs });
    const slots = known === undefined ? unknownSlots : knownSlots;
    const release = await slots.acquire(known ?? block, LIMITS.logIns.maxWaitMs);
    if (release === undefined) throw new RefusedError({ code: "busy", retryAfterMs: LIMITS.logIns.maxWaitMs });
    try {
      const reply = await logIn();
      if (known === undefined) unknownPlaces.giveBack(address);
      for (const key of [reply.browserToken, block].map(placeKey)) {
        if (!this.#knownPlaces.knows(key)) this.#knownPlaces.take(key, this.#nowMs());
      }
      return reply;
    } catch (error) {
      // Not an answer about the attempt: a service that is down uses up no attempts.
      if (known === undefined && !(error instanceof RefusedError)) unknownPlaces.giveBack(address);
      throw error;
    } finally {
      release();
    }
  }
}
