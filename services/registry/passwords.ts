/**
 * Passwords: argon2id at the parameters that OWASP recommends (19 MiB, two passes, one lane). Also the order of the
 * checks, so that wrong passwords from some addresses do not delay everyone else:
 *
 *   lanes    `known` (a person at a known address or with a session) and `others`. Each has its places. At least one
 *            check is always left for the other lane.
 *   parties  An organization in `known`, an address in `others`. A party gets a place while it holds fewer places than
 *            are free. So a party alone gets half of them, and some are left for the next. The parties take turns.
 */
import { hash, verify } from "@node-rs/argon2";
import { addressBlock } from "../bus/address-block.ts";
import { RefusedError } from "../bus/refusals.ts";
import { REGISTRY_LIMITS } from "./limits.ts";

const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

type LaneName = "known" | "others";

export interface Party {
  readonly lane: LaneName;
  readonly key: string;
}

interface TurnLimits {
  /** Checks that run at once, in all and of each lane. */
  readonly checksAtOnce: number;
  readonly checksOfLane: Readonly<Record<LaneName, number>>;
  /** Places of each lane: for checks that wait or run, and for attempts that the throttle has yet to count. */
  readonly places: Readonly<Record<LaneName, number>>;
}

class Lane {
  readonly places: number;
  readonly #checksAtOnce: number;
  atWork = 0;
  #taken = 0;
  readonly #held = new Map<string, number>();
  /** Parties that wait, by their turn; each with its checks in their order. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(places: number, checksAtOnce: number) {
    this.places = places;
    this.#checksAtOnce = checksAtOnce;
  }

  get isReady(): boolean {
    return this.#waiting.size > 0 && this.atWork < this.#checksAtOnce;
  }

  /** False when there is no place for this party. */
  enter(key: string): boolean {
    const held = this.#held.get(key) ?? 0;
    if (held >= this.places - this.#taken) return false;
    this.#held.set(key, held + 1);
    this.#taken += 1;
    return true;
  }

  leave(key: string): void {
    const held = (this.#held.get(key) ?? 1) - 1;
    if (held === 0) this.#held.delete(key);
    else this.#held.set(key, held);
    this.#taken -= 1;
  }

  wait(key: string, start: () => void): void {
    const own = this.#waiting.get(key);
    if (own === undefined) this.#waiting.set(key, [start]);
    else own.push(start);
  }

  /** The next check; its party has its next turn after all others. */
  next(): (() => void) | undefined {
    for (const [key, starts] of this.#waiting) {
      const start = starts.shift();
      this.#waiting.delete(key);
      if (starts.length > 0) this.#waiting.set(key, starts);
      return start;
    }
    return undefined;
  }
}

export class PasswordTurns {
  readonly #checksAtOnce: number;
  readonly #lanes: Readonly<Record<LaneName, Lane>>;

  constructor(limits: TurnLimits = REGISTRY_LIMITS.passwordTurns) {
    const { places, checksOfLane, checksAtOnce } = limits;
    this.#checksAtOnce = checksAtOnce;
    this.#lanes = {
      known: new Lane(places.known, checksOfLane.known),
      others: new Lane(places.others, checksOfLane.others),
    };
  }

  /**
   * Runs `work` on a place of the party; each check that it makes by `turn` waits until it is the party's turn. Throws
   * `busy`, before anything was done, when there is no place for the party.
   */
  async hold<T>(party: Party, work: (turn: Turn) => Promise<T>): Promise<T> {
    const lane = this.#lanes[party.lane];
    if (!lane.enter(party.key)) throw new RefusedError({ code: "busy", retryAfterMs: REGISTRY_LIMITS.passwordRetryMs });
    try {
      return await work((check) => this.#run(lane, party.key, check));
    } finally {
      lane.leave(party.key);
    }
  }

  async #run<T>(lane: Lane, key: string, check: () => Promise<T>): Promise<T> {
    const { promise: turn, resolve } = Promise.withResolvers<void>();
    lane.wait(key, resolve);
    this.#start();
    await turn;
    try {
      return await check();
    } finally {
      lane.atWork -= 1;
      this.#start();
    }
  }

  /** Starts all checks that may start. The lane with fewer checks at work comes first. */
  #start(): void {
    const { known, others } = this.#lanes;
    while (known.atWork + others.atWork < this.#checksAtOnce) {
      const ready = [known, others].filter((lane) => lane.isReady);
      const lane = ready.toSorted((a, b) => a.atWork - b.atWork)[0];
      if (lane === undefined) return;
      lane.atWork += 1;
      lane.next()?.();
    }
  }
}

/** Waits for the party's turn, then makes the check. */
type Turn = <T>(check: () => Promise<T>) => Promise<T>;

interface PasswordChecks {
  readonly hash: (password: string) => Promise<string>;
  /** False for an unknown user (`undefined`) after the same work as for a known one. */
  readonly verify: (stored: string | undefined, password: string) => Promise<boolean>;
}

export interface Passwords {
  /** Runs `work` while the party holds a place; its checks wait for their turns. Throws `busy` when there is no place. */
  readonly hold: <T>(party: Party, work: (checks: PasswordChecks) => Promise<T>) => Promise<T>;
}

/**
 * The stored hash for an unknown user. It has the parameters in use, so that the check takes as long, and a digest that
 * no password has.
 */
const UNKNOWN_USER_HASH = `$argon2id$v=19$m=${PARAMETERS.memoryCost},t=${PARAMETERS.timeCost},p=${PARAMETERS.parallelism}$${"A".repeat(22)}$${"A".repeat(43)}`;

export function createPasswords(): Passwords {
  const turns = new PasswordTurns();
  return {
    hold: (party, work) =>
      turns.hold(party, (turn) =>
        work({
          hash: (password) => turn(() => hash(password, PARAMETERS)),
          verify: async (stored, password) => {
            const matches = await turn(() => verify(stored ?? UNKNOWN_USER_HASH, password));
            return matches && stored !== undefined;
          },
        }),
      ),
  };
}

/** The party of a caller who is not known yet. */
export function addressParty(address: string): Party {
  return { lane: "others", key: addressBlock(address) };
}

/** The party of the operator of the installation. */
export const OPERATOR_PARTY: Party = { lane: "known", key: "operator" };

/**
 * The party of a person at a known address or with a valid session, so that one tenant does not keep others waiting.
 */
export function organizationParty(organizationId: number): Party {
  return { lane: "known", key: `organization ${organizationId}` };
}
