/** Whether a request comes from the operator of the installation: the platform key as a bearer token. */
import { hash, timingSafeEqual } from "node:crypto";
import type { AddressThrottle } from "../read-model/throttle/address-throttle.ts";
import { throttleHeaders } from "../read-model/throttle/token-bucket.ts";
import type { RequestFacts } from "./facts.ts";
import { Refusal } from "./handler-context.ts";
import { bearerToken } from "./session-check.ts";

export class PlatformCheck {
  /** Of the key; undefined where none is set. */
  readonly #digest: Buffer | undefined;
  readonly #throttle: AddressThrottle;

  constructor(platformKey: string | undefined, throttle: AddressThrottle) {
    this.#digest = platformKey === undefined ? undefined : hash("sha256", platformKey, "buffer");
    this.#throttle = throttle;
  }

  /** Whether the platform's paths exist. */
  get hasKey(): boolean {
    return this.#digest !== undefined;
  }

  /**
   * Throws `path_not_found` where no key is set, `platform_key_missing`, `platform_key_invalid`, or `throttled` for a wrong
   * key when its address has sent too many. The right key is never counted nor kept waiting: the emergency freeze must
   * work beside guesses from the operator's own address. Digests are compared, in constant time, so that neither
   * the key's length nor its beginning can be found out by the clock.
   */
  check(facts: RequestFacts): void {
    if (this.#digest === undefined) throw new Refusal("path_not_found");
    const token = bearerToken(facts.headers.authorization ?? "");
    if (token === "") throw new Refusal("platform_key_missing");
    if (timingSafeEqual(hash("sha256", token, "buffer"), this.#digest)) return;
    const retryAfterMs = this.#throttle.take(facts.address, Date.now());
    if (retryAfterMs === 0) throw new Refusal("platform_key_invalid");
    throw new Refusal("throttled", { headers: throttleHeaders("platform", this.#throttle.rate, retryAfterMs) });
  }
}
