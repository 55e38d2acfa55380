/**
 * Who sends a request, by kind of caller: a person with a session, the operator with the platform key, a robotics
 * consumer, or a device. Each check throws an `ApiError` or returns the caller. A program sends a person's session as a
 * bearer token and a page sends it as a cookie. The gateway accepts a cookie only from the service's pages.
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
import { ApiError, type DeviceCaller, type GatewayBus, UnknownCaller } from "./handler-context.ts";
import type { RequestFacts } from "./request-head.ts";
import { type Blocked, DEVICE_SCOPES, type DeviceScope } from "./route.ts";

export interface SessionCheckDeps {
  readonly sessions: SessionReplica;
  nowMs(): number;
  areSessionsFresh(nowMs: number): boolean;
  /** False while the replica may lack a valid session, because the bus has lost it. */
  areSessionsComplete(): boolean;
  /** Resolves true once the replica has all that was stored before the call, false without a proof in time. */
  waitForNewestSessions(): Promise<boolean>;
}

/** Throws `replica_stale`, `session_missing`, `session_invalid`, `csrf_refused`, `permission_denied` or an `UnknownCaller`. */
export function checkSession(deps: SessionCheckDeps, facts: RequestFacts, permission: Permission | null): SessionEntry {
  return findSession(deps, facts, permission, refuseForeignOrigin).session;
}

interface UpgradingSession {
  readonly session: SessionEntry;
  /** The gateway finds the session again by this digest, for as long as the socket is open. */
  readonly digest: string;
}

/**
 * The same for a request that becomes a WebSocket. It is a GET, but this check includes the origin: a browser hides the
 * answer to a GET from a page of another origin, and does not hide the messages of a WebSocket.
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
  if (!deps.areSessionsFresh(nowMs)) throw new ApiError("replica_stale");
  const { token, isBearer } = tokenOf(facts);
  if (token === undefined) throw new ApiError("session_invalid");
  if (token === "") throw new ApiError("session_missing");
  if (!isBearer) checkOrigin(facts);
  const digest = sessionDigest(token);
  const session = deps.sessions.findDigest(digest, nowMs);
  if (session === undefined) {
    // The page that gets `session_invalid` signs its person out. Another gateway may have begun the session a moment ago.
    throw new UnknownCaller(async () => {
      const isCertain = (await deps.waitForNewestSessions()) && deps.areSessionsComplete();
      return isCertain && deps.sessions.findDigest(digest, deps.nowMs()) === undefined
        ? "session_invalid"
        : "replica_stale";
    });
  }
  if (permission !== null && !session.permissions.includes(permission)) throw new ApiError("permission_denied");
  return { session, digest };
}

/**
 * Whether the session of an admitted request is still open, for an answer that takes long. A replica that is stale or incomplete
 * proves nothing.
 */
export function isSessionOpen(deps: SessionCheckDeps, facts: RequestFacts): boolean {
  const nowMs = deps.nowMs();
  const { token = "" } = tokenOf(facts);
  if (deps.sessions.find(token, nowMs) !== undefined) return true;
  return !deps.areSessionsFresh(nowMs) || !deps.areSessionsComplete();
}

/** The token of a session: empty when there is none, undefined when there are several cookies. */
function tokenOf({ headers }: RequestFacts): { readonly token: string | undefined; readonly isBearer: boolean } {
  const bearer = bearerToken(headers.authorization ?? "");
  if (bearer !== "") return { token: bearer, isBearer: true };
  return { token: tokenFromCookie(headers.cookie ?? ""), isBearer: false };
}

/**
 * Prevents cross-site request forgery. A browser sends the cookie with the requests of any site's page, but it also
 * names that site: in `Origin`, or else in `Sec-Fetch-Site`. A request with neither header does not come from a page.
 */
export function refuseForeignOrigin(facts: RequestFacts): void {
  if (facts.method !== "GET" && facts.method !== "HEAD") refuseForeign(facts);
}

function refuseForeign(facts: RequestFacts): void {
  const { origin, host = "" } = facts.headers;
  if (origin !== undefined) {
    if (!isOwnOrigin(origin, { host, secure: facts.secure })) throw new ApiError("csrf_refused");
    return;
  }
  const site = facts.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") throw new ApiError("csrf_refused");
}

/** The token of an `Authorization: Bearer` header; the empty string when there is none. */
function bearerToken(authorization: string): string {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "";
}

/**
 * Whether the page has the same origin (scheme, host and port) as the address of the request. `own.secure` is true when
 * the gateway knows that the connection is encrypted: by its TLS, or from a trusted proxy. Then only a page of `https`
 * has the same origin, because an attacker in the network can write a page of `http`. Otherwise the gateway does not
 * know the scheme of the request: a proxy that no setting names may have ended TLS. It then uses the page's scheme.
 */
export function isOwnOrigin(origin: string, own: { readonly host: string; readonly secure: boolean }): boolean {
  const page = URL.parse(origin);
  if (page === null || (page.protocol !== "http:" && page.protocol !== "https:")) return false;
  const scheme = own.secure ? "https:" : page.protocol;
  return URL.parse(`${scheme}//${own.host}`)?.origin === page.origin;
}

/** Whether a request comes from the operator of the installation: the platform key as a bearer token. */
export class PlatformCheck {
  /** The digest of the platform key; undefined where no key is set. */
  readonly #digest: Buffer | undefined;
  readonly #throttle: AddressThrottle;

  constructor(platformKey: string | undefined, throttle: AddressThrottle) {
    this.#digest = platformKey === undefined ? undefined : hash("sha256", platformKey, "buffer");
    this.#throttle = throttle;
  }

  /** Without a key the platform's paths do not exist. */
  get hasKey(): boolean {
    return this.#digest !== undefined;
  }

  /**
   * Throws `path_not_found` where no key is set, `platform_key_missing`, `platform_key_invalid`, or `throttled` for a
   * wrong key when its address has sent too many. The throttle never applies to the right key: the emergency freeze
   * must work while an attacker guesses keys from the operator's address. The check compares digests in constant time,
   * so that its duration shows neither the length of the key nor its first characters.
   */
  check(facts: RequestFacts): void {
    if (this.#digest === undefined) throw new ApiError("path_not_found");
    const token = bearerToken(facts.headers.authorization ?? "");
    if (token === "") throw new ApiError("platform_key_missing");
    if (timingSafeEqual(hash("sha256", token, "buffer"), this.#digest)) return;
    const retryAfterMs = this.#throttle.take(facts.address, performance.now());
    if (retryAfterMs === 0) throw new ApiError("platform_key_invalid");
    throw new ApiError("throttled", { headers: throttleHeaders("platform", this.#throttle.rate, retryAfterMs) });
  }
}

/** `rc_` and 32 bytes as base64url. The gateway refuses any other text without asking the robotics service. */
const CREDENTIAL = /^rc_[\w-]{43}$/;

/**
 * Which robotics consumer sends a request, by its credential, which is the bearer token. The gateway asks the robotics
 * service about every request. It remembers only that a credential was good: this decides whether the throttle of the
 * credential or of the sender's address counts the next request.
 */
export class ConsumerCheck {
  readonly #bus: Pick<GatewayBus, "call">;
  readonly #known = new CredentialThrottle(CONSUMER_RATE, MAX_CONSUMERS);
  readonly #unknown = new AddressThrottle(UNKNOWN_CONSUMER_RATE);
  /** The first checks that are under way, by the credential's digest. The address throttle bounds their number. */
  readonly #firstChecks = new Map<string, Promise<unknown>>();

  constructor(bus: Pick<GatewayBus, "call">) {
    this.#bus = bus;
  }

  /** Requests that were throttled so far, by credential or by address. */
  get throttledCount(): number {
    return this.#known.throttledCount + this.#unknown.throttledCount;
  }

  /**
   * Throws `credential_missing`, `credential_invalid`, `consumer_suspended`, `throttled`, or what the bus throws.
   *
   * Before the gateway asks the service about an unknown credential, it takes a token of the sender's address. It gives
   * the token back for a good credential, and when the service does not answer. So a sender that guesses credentials can
   * neither overload the service nor lock out the fleets behind the same address, and neither does an outage.
   */
  async check(facts: RequestFacts): Promise<ConsumerCaller> {
    const token = bearerToken(facts.headers.authorization ?? "");
    if (token === "") throw new ApiError("credential_missing");
    const digest = hash("sha256", token, "hex");
    // A fleet may send several requests at once. The later ones wait for the first check of their credential.
    await this.#firstChecks.get(digest)?.catch(() => undefined);
    return this.#known.knows(digest) ? await this.#checkAgain(digest) : await this.#checkFirst(digest, token, facts);
  }

  async #checkAgain(digest: string): Promise<ConsumerCaller> {
    requireToken("consumer", this.#known.rate, this.#known.take(digest, performance.now()));
    const { consumer, suspended } = await this.#find(digest);
    if (consumer !== null) return consumer;
    // The credential of a suspended consumer is still good, so the throttle of the credential still counts it.
    if (suspended !== true) this.#known.forget(digest);
    throw consumerError(suspended);
  }

  async #checkFirst(digest: string, token: string, { address }: RequestFacts): Promise<ConsumerCaller> {
    requireToken("address", this.#unknown.rate, this.#unknown.take(address, performance.now()));
    if (!CREDENTIAL.test(token)) throw new ApiError("credential_invalid");
    const checking = this.#find(digest).catch((error: unknown) => {
      this.#unknown.giveBack(address);
      throw error;
    });
    this.#firstChecks.set(digest, checking);
    try {
      const { consumer, suspended } = await checking;
      if (consumer === null && suspended !== true) throw consumerError();
      this.#unknown.giveBack(address);
      requireToken("consumer", this.#known.rate, this.#known.take(digest, performance.now()));
      if (consumer === null) throw consumerError(suspended);
      return consumer;
    } finally {
      if (this.#firstChecks.get(digest) === checking) this.#firstChecks.delete(digest);
    }
  }

  async #find(credentialHash: string): Promise<ReplyOf<typeof authenticateConsumer>> {
    return await this.#bus.call(authenticateConsumer, { credentialHash });
  }
}

/** `consumer_suspended` shows a fleet that its credential is good, and that it needs no new one. */
function consumerError(isSuspended = false): ApiError {
  return new ApiError(isSuspended ? "consumer_suspended" : "credential_invalid");
}

function requireToken(name: string, rate: CredentialThrottle["rate"], retryAfterMs: number): void {
  if (retryAfterMs > 0) throw new ApiError("throttled", { headers: throttleHeaders(name, rate, retryAfterMs) });
}

interface DeviceCheckDeps {
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
   * The device of a credential. Throws an `UnknownCaller`, `replica_stale`, `credential_missing`, `throttled`,
   * `scope_denied` or, where a blocked device is refused, the reason of its standing. `passed` is the slot of a device
   * that the gate has let through already: the throttle does not count its request again.
   */
  check(authorization: string, scope: DeviceScope, blocked: Blocked, passed: number | undefined): DeviceCaller {
    const { gate } = this.#deps;
    const nowMs = this.#deps.nowMs();
    const slot = passed ?? gate.pass(authorization, scopeBit(scope), nowMs);
    if (slot === SHUT.invalid) throw new UnknownCaller(() => gate.whyInvalid(authorization));
    if (slot < 0) throw this.#shut(slot, nowMs);
    const device = this.#callerOf(slot);
    const view = this.view("self", device, nowMs);
    if (blocked === "refused" && view.blocked !== "") throw new ApiError(view.blocked as ErrorCode);
    return device;
  }

  /**
   * A device's current view. Throws `credential_invalid` when its station has revoked it, and `replica_stale` when the
   * station has not received the device yet.
   */
  view(name: PollName, device: DeviceCaller, nowMs: number): Rendered {
    const { views } = this.#deps;
    const { slot, deviceId, stationId } = device;
    const view = views.view(name, slot, deviceId, stationId, nowMs);
    if (view === undefined) throw new ApiError(views.whyNone(deviceId, stationId));
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

  #shut(shut: number, nowMs: number): ApiError {
    const code = SHUT_CODES[shut] as ErrorCode;
    if (shut !== SHUT.throttled) return new ApiError(code);
    const retryAfterMs = waitMs(CREDENTIAL_RATE, this.#deps.gate.throttledUntilFullAtMs, nowMs);
    return new ApiError(code, { headers: throttleHeaders("credential", CREDENTIAL_RATE, retryAfterMs) });
  }
}
