/**
 * Who a robotics consumer is, by the credential that it sends as a bearer token. The robotics service is asked each time,
 * because a credential is verified on every read: nothing of its answer is kept but that the credential was good, which
 * only decides by what its next request is throttled.
 */
import { hash } from "node:crypto";
import { authenticateConsumer, type ConsumerCaller } from "../../services/bus/messages/robotics.ts";
import type { ReplyOf } from "../../services/bus/operation.ts";
import { AddressThrottle } from "../read-model/throttle/address-throttle.ts";
import { CredentialThrottle } from "../read-model/throttle/credential-throttle.ts";
import { CONSUMER_RATE, MAX_CONSUMERS, UNKNOWN_CONSUMER_RATE } from "../read-model/throttle/limits.ts";
import { throttleHeaders } from "../read-model/throttle/token-bucket.ts";
import type { RequestFacts } from "./facts.ts";
import { type GatewayBus, Refusal } from "./handler-context.ts";
import { bearerToken } from "./session-check.ts";

/** `rc_` and 32 bytes as base64url; nothing else is worth asking about. */
const CREDENTIAL = /^rc_[\w-]{43}$/;

export class ConsumerCheck {
  readonly #bus: Pick<GatewayBus, "call">;
  readonly #known = new CredentialThrottle(CONSUMER_RATE, MAX_CONSUMERS);
  readonly #unknown = new AddressThrottle(UNKNOWN_CONSUMER_RATE);
  /** First looks at credentials that are under way, by digest: never more than the addresses have tokens for. */
  readonly #firstLooks = new Map<string, Promise<unknown>>();

  constructor(bus: Pick<GatewayBus, "call">) {
    this.#bus = bus;
  }

  /** Requests that were throttled so far, by credential or by address. */
  get throttledCount(): number {
    return this.#known.throttledCount + this.#unknown.throttledCount;
  }

  /**
   * Throws `credential_missing`, `credential_invalid`, `consumer_suspended`, `throttled`, or what the bus throws. A credential that is not known
   * to be good takes a token of its sender's address before anybody is asked, and gets it back when it is good: so nobody
   * who tries credentials can load the service, nor lock out the fleets behind the same address.
   */
  async check(facts: RequestFacts): Promise<ConsumerCaller> {
    const token = bearerToken(facts.headers.authorization ?? "");
    if (token === "") throw new Refusal("credential_missing");
    const digest = hash("sha256", token, "hex");
    // A fleet's first requests come at once; those behind the first one wait to see whether its credential is good.
    await this.#firstLooks.get(digest)?.catch(() => undefined);
    return this.#known.knows(digest) ? await this.#lookAgain(digest) : await this.#lookFirst(digest, token, facts);
  }

  async #lookAgain(digest: string): Promise<ConsumerCaller> {
    requireToken("consumer", this.#known.rate, this.#known.take(digest, Date.now()));
    const { consumer, suspended } = await this.#find(digest);
    if (consumer !== null) return consumer;
    // A suspended one's credential is good: it goes on being throttled as one.
    if (suspended !== true) this.#known.forget(digest);
    throw refusalOf(suspended);
  }

  async #lookFirst(digest: string, token: string, { address }: RequestFacts): Promise<ConsumerCaller> {
    requireToken("address", this.#unknown.rate, this.#unknown.take(address, Date.now()));
    if (!CREDENTIAL.test(token)) throw new Refusal("credential_invalid");
    const looking = this.#find(digest);
    this.#firstLooks.set(digest, looking);
    try {
      const { consumer, suspended } = await looking;
      if (consumer === null && suspended !== true) throw refusalOf();
      this.#unknown.giveBack(address);
      requireToken("consumer", this.#known.rate, this.#known.take(digest, Date.now()));
      if (consumer === null) throw refusalOf(suspended);
      return consumer;
    } finally {
      if (this.#firstLooks.get(digest) === looking) this.#firstLooks.delete(digest);
    }
  }

  async #find(credentialHash: string): Promise<ReplyOf<typeof authenticateConsumer>> {
    return await this.#bus.call(authenticateConsumer, { credentialHash });
  }
}

/** Who holds a good credential is told that it rests and need not be replaced. */
function refusalOf(isSuspended = false): Refusal {
  return new Refusal(isSuspended ? "consumer_suspended" : "credential_invalid");
}

function requireToken(name: string, rate: CredentialThrottle["rate"], retryAfterMs: number): void {
  if (retryAfterMs > 0) throw new Refusal("throttled", { headers: throttleHeaders(name, rate, retryAfterMs) });
}
