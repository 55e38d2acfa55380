/**
 * Who sends a request, by kind of caller: a person's session, the operator's platform key, a robotics consumer, a device.
 * Each check throws a `Refusal` or returns the caller. A person's program sends a bearer token, a page a cookie; a cookie
 * counts only from the service's own pages (design §5).
 */

import { hash, timingSafeEqual } from "node:crypto";
import type { Permission } from "../../services/bus/messages/caller.ts";
import { authenticateConsumer, type ConsumerCaller } from "../../services/bus/messages/consumers.ts";
import type { SessionEntry } from "../../services/bus/messages/sessions.ts";
import type { ReplyOf } from "../../services/bus/operation.ts";
import { scopeBit } from "../read-model/credential-replica.ts";
import { type DeviceGate, SHUT, SHUT_CODES } from "../read-model/device-gate.ts";
import type { PollName, Rendered } from "../read-model/rendered.ts";
import { type SessionReplica, sessionDigest } from "../read-model/session-replica.ts";
import {
  AddressThrottle,
  CONSUMER_RATE,
  CREDENTIAL_RATE,
  CredentialThrottle,
  MAX_CONSUMERS,
  throttleHeaders,
  UNKNOWN_CONSUMER_RATE,
  waitMs,
} from "../read-model/throttles.ts";
import type { ViewCache } from "../read-model/view-cache.ts";
import { tokenFromCookie } from "./cookies.ts";
import type { ErrorCode } from "./errors.ts";
import { type DeviceCaller, type GatewayBus, Refusal } from "./handler-context.ts";
import type { RequestFacts } from "./request-head.ts";
import { type Blocked, DEVICE_SCOPES, type DeviceScope } from "./route.ts";

export interface SessionCheckDeps {
  readonly sessions: SessionReplica;
  nowMs(): number;
  areSessionsFresh(nowMs: number): boolean;
  /** False while a session may be valid that is not in the replica, because the bus has lost it. */
  areSessionsComplete(): boolean;
}

/** Throws `replica_stale`, `session_missing`, `session_invalid`, `csrf_refused` or `permission_denied`. */
export function checkSession(deps: SessionCheckDeps, facts: RequestFacts, permission: Permission | null): SessionEntry {
  return findSession(deps, facts, permission, refuseForeignOrigin).session;
}

export interface UpgradingSession {
  readonly session: SessionEntry;
  /** By this the session is found again for as long as the socket lives. */
  readonly digest: string;
}

/**
 * The same for a request that becomes a WebSocket: a page of another origin could read what comes over it, which the
 * browser would keep from it for a GET, so the origin counts here too.
 */
export function checkUpgrade(
  deps: SessionCheckDeps,
  facts: RequestFacts,
  permission: Permission | null,
): UpgradingSession {
  return findSession(deps, facts, permission, refuseForeign);
}

function findSession(
  deps: SessionCheckDeps,
  facts: RequestFacts,
  permission: Permission | null,
  checkOrigin: (facts: RequestFacts) => void,
): UpgradingSession {
  const nowMs = deps.nowMs();
  if (!deps.areSessionsFresh(nowMs)) throw new Refusal("replica_stale");
  const bearer = bearerToken(facts.headers.authorization ?? "");
  const token = bearer === "" ? tokenFromCookie(facts.headers.cookie ?? "") : bearer;
  if (token === undefined) throw new Refusal("session_invalid");
  if (token === "") throw new Refusal("session_missing");
  if (bearer === "") checkOrigin(facts);
  const digest = sessionDigest(token);
  const session = deps.sessions.findDigest(digest, nowMs);
  if (session === undefined) throw new Refusal(deps.areSessionsComplete() ? "session_invalid" : "replica_stale");
  if (permission !== null && !session.permissions.includes(permission)) throw new Refusal("permission_denied");
  return { session, digest };
}

/**
 * Cross-site request forgery: a browser sends the cookie for the page of any site, but it also names that site.
 * `Origin` decides where it was sent, else `Sec-Fetch-Site`; a request with neither does not come from a browser's page.
 */
export function refuseForeignOrigin(facts: RequestFacts): void {
  if (facts.method !== "GET" && facts.method !== "HEAD") refuseForeign(facts);
}

function refuseForeign(facts: RequestFacts): void {
  const { origin, host = "" } = facts.headers;
  if (origin !== undefined) {
    if (!isOwnOrigin(origin, { host, secure: facts.secure })) throw new Refusal("csrf_refused");
    return;
  }
  const site = facts.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") throw new Refusal("csrf_refused");
}

/** The token of an `Authorization: Bearer` header; the empty string when there is none. */
function bearerToken(authorization: string): string {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "";
}

/**
 * Whether the page came from where the request went: scheme, host and port. A connection that is known to be encrypted
 * (TLS here, or a trusted proxy that says so) has pages of `https` only: one of `http` may have been written by anybody
 * on the way. Of any other connection the scheme is not known, because a proxy that no setting names may have ended TLS;
 * then the page's own scheme counts.
 */
export function isOwnOrigin(origin: string, own: { readonly host: string; readonly secure: boolean }): boolean {
  const page = URL.parse(origin);
  if (page === null || (page.protocol !== "http:" && page.protocol !== "https:")) return false;
  const scheme = own.secure ? "https:" : page.protocol;
  return URL.parse(`${scheme}//${own.host}`)?.origin === page.origin;
}

/** Whether a request comes from the operator of the installation: the platform key as a bearer token. */
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
    const retryAfterMs = this.#throttle.take(facts.address, performance.now());
    if (retryAfterMs === 0) throw new Refusal("platform_key_invalid");
    throw new Refusal("throttled", { headers: throttleHeaders("platform", this.#throttle.rate, retryAfterMs) });
  }
}

/** `rc_` and 32 bytes as base64url; nothing else is worth asking about. */
const CREDENTIAL = /^rc_[\w-]{43}$/;

/**
 * Who a robotics consumer is, by the credential that it sends as a bearer token. The robotics service is asked each time,
 * because a credential is verified on every read: nothing of its answer is kept but that the credential was good, which
 * only decides by what its next request is throttled.
 */
export class ConsumerCheck {
  readonly #bus: Pick<GatewayBus, "call">;
  readonly #known = new CredentialThrottle(CONSUMER_RATE, MAX_CONSUMERS);
  readonly #unknown = new AddressThrottle(UNKNOWN_CONSUMER_RATE);
  /** First checks of credentials that are under way, by digest: never more than the addresses have tokens for. */
  readonly #firstChecks = new Map<string, Promise<unknown>>();

  constructor(bus: Pick<GatewayBus, "call">) {
    this.#bus = bus;
  }

  /** Requests that were throttled so far, by credential or by address. */
  get throttledCount(): number {
    return this.#known.throttledCount + this.#unknown.throttledCount;
  }

  /**
   * Throws `credential_missing`, `credential_invalid`, `consumer_suspended`, `throttled`, or what the bus throws. A credential that is not known
   * to be good takes a token of its sender's address before the service is asked, and gets it back when it is good. So a
   * sender that tries credentials can neither load the service nor lock out the fleets behind the same address.
   */
  async check(facts: RequestFacts): Promise<ConsumerCaller> {
    const token = bearerToken(facts.headers.authorization ?? "");
    if (token === "") throw new Refusal("credential_missing");
    const digest = hash("sha256", token, "hex");
    // A fleet's first requests come at once; those behind the first one wait to see whether its credential is good.
    await this.#firstChecks.get(digest)?.catch(() => undefined);
    return this.#known.knows(digest) ? await this.#checkAgain(digest) : await this.#checkFirst(digest, token, facts);
  }

  async #checkAgain(digest: string): Promise<ConsumerCaller> {
    requireToken("consumer", this.#known.rate, this.#known.take(digest, performance.now()));
    const { consumer, suspended } = await this.#find(digest);
    if (consumer !== null) return consumer;
    // A suspended one's credential is good: it goes on being throttled as one.
    if (suspended !== true) this.#known.forget(digest);
    throw consumerRefusal(suspended);
  }

  async #checkFirst(digest: string, token: string, { address }: RequestFacts): Promise<ConsumerCaller> {
    requireToken("address", this.#unknown.rate, this.#unknown.take(address, performance.now()));
    if (!CREDENTIAL.test(token)) throw new Refusal("credential_invalid");
    const checking = this.#find(digest);
    this.#firstChecks.set(digest, checking);
    try {
      const { consumer, suspended } = await checking;
      if (consumer === null && suspended !== true) throw consumerRefusal();
      this.#unknown.giveBack(address);
      requireToken("consumer", this.#known.rate, this.#known.take(digest, performance.now()));
      if (consumer === null) throw consumerRefusal(suspended);
      return consumer;
    } finally {
      if (this.#firstChecks.get(digest) === checking) this.#firstChecks.delete(digest);
    }
  }

  async #find(credentialHash: string): Promise<ReplyOf<typeof authenticateConsumer>> {
    return await this.#bus.call(authenticateConsumer, { credentialHash });
  }
}

/** The holder of a good credential learns that it rests and need not be replaced. */
function consumerRefusal(isSuspended = false): Refusal {
  return new Refusal(isSuspended ? "consumer_suspended" : "credential_invalid");
}

function requireToken(name: string, rate: CredentialThrottle["rate"], retryAfterMs: number): void {
  if (retryAfterMs > 0) throw new Refusal("throttled", { headers: throttleHeaders(name, rate, retryAfterMs) });
}

export interface DeviceCheckDeps {
  readonly gate: DeviceGate;
  readonly views: ViewCache;
  nowMs(): number;
}

/** The check of device requests that have a handler; polls use the gate alone. */
export class DeviceCheck {
  readonly #deps: DeviceCheckDeps;

  constructor(deps: DeviceCheckDeps) {
    this.#deps = deps;
  }

  /**
   * The device of a credential. Throws `replica_stale`, `credential_missing`, `credential_invalid`, `throttled`,
   * `scope_denied` or, where a blocked device is refused, the reason of its standing. A device that has passed the gate
   * already comes with its slot and is not throttled a second time.
   */
  check(authorization: string, scope: DeviceScope, blocked: Blocked, passed: number | undefined): DeviceCaller {
    const { gate } = this.#deps;
    const nowMs = this.#deps.nowMs();
    const slot = passed ?? gate.pass(authorization, scopeBit(scope), nowMs);
    if (slot < 0) throw this.#shut(slot, nowMs);
    const device = this.#callerOf(slot);
    const view = this.view("self", device, nowMs);
    if (blocked === "refused" && view.blocked !== "") throw new Refusal(view.blocked as ErrorCode);
    return device;
  }

  /**
   * A device's current view. Throws `credential_invalid` when its station has revoked it, and `replica_stale` when the station
   * has not received the device yet.
   */
  view(name: PollName, device: DeviceCaller, nowMs: number): Rendered {
    const { views } = this.#deps;
    const { slot, deviceId, stationId } = device;
    const view = views.view(name, slot, deviceId, stationId, nowMs);
    if (view === undefined) throw new Refusal(views.whyNone(deviceId, stationId));
    return view;
  }

  #callerOf(slot: number): DeviceCaller {
    const { table } = this.#deps.gate;
    const mask = table.scopeMask(slot);
    return {
      slot,
      deviceId: table.deviceId(slot),
      stationId: table.stationId(slot),
      scopes: DEVICE_SCOPES.filter((scope) => (mask & scopeBit(scope)) !== 0),
    };
  }

  #shut(shut: number, nowMs: number): Refusal {
    const code = SHUT_CODES[shut] as ErrorCode;
    if (shut !== SHUT.throttled) return new Refusal(code);
    const retryAfterMs = waitMs(CREDENTIAL_RATE, this.#deps.gate.throttledUntilFullAtMs, nowMs);
    return new Refusal(code, { headers: throttleHeaders("credential", CREDENTIAL_RATE, retryAfterMs) });
  }
}
