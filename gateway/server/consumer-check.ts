/**
 * Who a robotics consumer is, by the credential that it sends as a bearer token. The robotics service is asked each time,
 * because a credential is verified on every read: nothing of its answer is kept but that the credential was good, which
 * only decides by what its next request is throttled.
 */
import { hash } from "node:crypto";
import { authenticateConsumer, type ConsumerCaller } from "../../services/bus/messages/robotics.ts";
import { type GatewayBus, Refusal } from "../handlers/context.ts";
import { AddressThrottle } from "../throttle/address-throttle.ts";
import { CredentialThrottle } from "../throttle/credential-throttle.ts";
import { CONSUMER_RATE, MAX_CONSUMERS, UNKNOWN_CONSUMER_RATE } from "../throttle/limits.ts";
import { throttleHeaders } from "../throttle/token-bucket.ts";
import type { RequestFacts } from "./facts.ts";
import { bearerToken } from "./session-check.ts";

/** `rc_` and 32 bytes as base64url; nothing else is worth asking about. */
const CREDENTIAL = /^rc_[\w-]{43}$/;

export class ConsumerCheck {
  readonly #bus: Pick<GatewayBus, "call">;
  readonly #known = new CredentialThrottle(CONSUMER_RATE, MAX_CONSUMERS);
  readonly #unknown = new AddressThrottle(UNKNOWN_CONSUMER_RATE);

  constructor(bus: Pick<GatewayBus, "call">) {
    this.#bus = bus;
  }

  /** Requests that were throttled so far, by credential or by address. */
  get throttledCount(): number {
    return this.#known.throttledCount + this.#unknown.throttledCount;
  }

  /**
   * Throws `credential_missing`, `credential_invalid`, `throttled`, or what the bus throws. A credential that is not known
   * to be good takes a token of its sender's address before anybody is asked, so that nobody who tries credentials can
   * load the service, nor lock out the fleets behind the same address.
   */
  async check(facts: RequestFacts): Promise<ConsumerCaller> {
    const token = bearerToken(facts.headers.authorization ?? "");
    if (token === "") throw new Refusal("credential_missing");
    const digest = hash("sha256", token, "hex");
    const nowMs = Date.now();
    const isKnown = this.#known.knows(digest);
    if (isKnown) requireToken("consumer", this.#known.rate, this.#known.take(digest, nowMs));
    else requireToken("address", this.#unknown.rate, this.#unknown.take(facts.address, nowMs));
    if (!CREDENTIAL.test(token)) throw new Refusal("credential_invalid");
    const { consumer } = await this.#bus.call(authenticateConsumer, { credentialHash: digest });
    if (consumer === null) {
      this.#known.forget(digest);
      throw new Refusal("credential_invalid");
    }
    if (!isKnown) requireToken("consumer", this.#known.rate, this.#known.take(digest, nowMs));
    return consumer;
  }
}

function requireToken(name: string, rate: CredentialThrottle["rate"], retryAfterMs: number): void {
  if (retryAfterMs > 0) throw new Refusal("throttled", { headers: throttleHeaders(name, rate, retryAfterMs) });
}
