/**
 * The input and output of a handler. A handler returns a reply or throws an `ApiError` (below), or lets an error of the bus pass
 * (`RefusedError`, `UnavailableError`). One place in the server turns each into a response.
 */
import type { z } from "zod";
import type { Actor } from "../../machines/actor.ts";
import type { EarlierSale } from "../../machines/payment-intent.ts";
import type { KillSwitches } from "../../machines/standing.ts";
import type { StationState } from "../../machines/station/state.ts";
import type { FieldError } from "../../services/bus/field-errors.ts";
import type { ConsumerCaller } from "../../services/bus/messages/consumers.ts";
import type { SessionEntry } from "../../services/bus/messages/sessions.ts";
import type { RequestedCommand, StationResponse } from "../../services/bus/messages/station-commands.ts";
import type { Operation } from "../../services/bus/operation.ts";
import type { StoredFile } from "../../services/bus/statement-files.ts";
import type { FairSlots } from "../../services/runtime/fair-slots.ts";
import type { Log } from "../../services/runtime/log.ts";
import type { CallbackLanes } from "../read-model/callback-lanes.ts";
import type { PollName, Rendered } from "../read-model/rendered.ts";
import type { AddressThrottle } from "../read-model/throttles.ts";
import type { ErrorCode } from "./errors.ts";
import type { LogInGate } from "./log-in-gate.ts";

/** What every handler may use. */
export interface HandlerDeps {
  readonly bus: GatewayBus;
  /** A station's newest state in the replica; undefined when the replica has no such station. Throws `replica_stale`. */
  station(stationId: number): StationState | undefined;
  /**
   * The same, but waits until the replica has all commits from before this call, about half a second. For an answer that must
   * not be wrong because the replica is late (design §2.2).
   */
  newestStation(stationId: number): Promise<StationState | undefined>;
  /** False when `station` or `switches` would throw. For the answer to a completed change, which must not become an error. */
  isFresh(stationId: number): boolean;
  /** The error for a caller whose station is not in the replica. Asks the registry. */
  whyNoStation(caller: SessionEntry, stationId: number): Promise<"not_found" | "replica_stale">;
  /** The kill switches that are on. Throws `replica_stale`. */
  switches(): KillSwitches;
  /** When a companion last asked any gateway for its assignment; null when never. */
  readonly polledAtMs: (deviceId: number) => number | null;
  /** A device's view as text, rendered once per commit. Throws `replica_stale`, or `credential_invalid` for an unknown device. */
  deviceView(name: PollName, device: DeviceCaller): Rendered;
  /** Throws `replica_stale` unless all replicas that a device's request needs are fresh. */
  requireFresh(): void;
  /** The body of `GET /readyz`. */
  readiness(): Promise<{ readonly ready: boolean }>;
  /** Attempts to enroll, by client address. */
  readonly enrollThrottle: AddressThrottle;
  /** Enrollments under way, by client address (IPv6: its /64). */
  readonly enrollSlots: FairSlots<string>;
  readonly logInGate: LogInGate;
  /** Uploads under way, by organization. */
  readonly uploadSlots: FairSlots<number>;
  /** Providers' callbacks, by client address. */
  readonly callbackThrottle: AddressThrottle;
  /** Reads of the log of certification artifacts, by client address. */
  readonly certificationLogThrottle: AddressThrottle;
  /** Callbacks under way. */
  readonly callbackLanes: CallbackLanes;
  readonly log: Pick<Log, "warn">;
  nowMs(): number;
}

/** Whether all changes of one request are effective at this gateway. The calls of services set it (`gateway-bus.ts`). */
export interface Effect {
  isEffective: boolean;
}

export interface GatewayBus {
  /**
   * Calls a service. When the reply has a `barrier`, waits (bounded) until this gateway's replicas show the change. Only a route
   * with `awaitsEffect` may make such a change; its answer reports when the wait ended before.
   */
  call<TRequest extends z.ZodType, TReply extends z.ZodType>(
    operation: Operation<TRequest, TReply>,
    request: z.input<TRequest>,
    timeoutMs?: number,
  ): Promise<z.infer<TReply>>;
  /**
   * Sends a command to a station's actor and waits (bounded) until this gateway's replica shows the commit. When the reply has
   * `ok: false`, throws an `ApiError` with its code, status and reason.
   */
  command(
    stationId: number,
    command: StationCommandRequest,
    options?: { readonly timeoutMs?: number },
  ): Promise<AcceptedResponse>;
  /** Stores all bytes of a file or none. Throws `storage_low` or `UnavailableError`, or the error of `bytes`. */
  storeFile(bytes: AsyncIterable<Uint8Array>): Promise<StoredFile>;
  /** Deletes a stored file that no request refers to. When that fails, retention deletes the file later. */
  discardFile(name: string): Promise<void>;
  /** This bus for one request. It sets `effect` when a change is not yet effective. */
  noting(effect: Effect): GatewayBus;
  /** Stores a device's heartbeat; resolves when the stream has it. Throws `UnavailableError`. */
  heartbeat(device: DeviceCaller, heartbeat: { readonly atMs: number; readonly summary: object }): Promise<void>;
}

export interface StationCommandRequest {
  readonly commandId: string;
  readonly actor: Actor;
  readonly command: RequestedCommand;
}

/** A station's answer that is no refusal. */
export interface AcceptedResponse extends StationResponse {
  readonly reply: Extract<StationResponse["reply"], { ok: true }>;
}

export interface Context<TBody = undefined, TQuery = undefined> {
  /** The validated body; undefined where the route has none. */
  readonly body: TBody;
  /** The validated query; undefined where the route has none. */
  readonly query: TQuery;
  /** An id of the path: `context.id("station_id")` for `/stations/{station_id}/`. Always a positive integer. */
  readonly id: (name: string) => number;
  /** The segment of the path at `{file}`. */
  readonly file: () => string;
  /** A request header by its lower-case name; the empty string when it was not sent. */
  header(name: string): string;
  readonly requestId: string;
  /** The client's address as text. A forwarded address counts only from a configured proxy. */
  readonly address: string;
  /** Whether the client's own connection is encrypted, for the cookie's `Secure`. */
  readonly secure: boolean;
  readonly deps: HandlerDeps;
}

/** For a route with `who: session(...)`. Pass `caller` on to the services unchanged. */
export interface SessionContext<TBody = undefined, TQuery = undefined> extends Context<TBody, TQuery> {
  readonly caller: SessionEntry;
}

export interface DeviceCaller {
  /** The position of its credential in the replica: a hint for the cache of views. */
  readonly slot: number;
  readonly deviceId: number;
  readonly stationId: number;
  readonly scopes: readonly string[];
}

/** For a route with `who: device(...)`. */
export interface DeviceContext<TBody = undefined, TQuery = undefined> extends Context<TBody, TQuery> {
  readonly device: DeviceCaller;
}

/** For a route with `who: consumer`. The robotics service has identified `consumer`: pass it on to the services unchanged. */
export interface ConsumerContext<TQuery = undefined> extends Context<undefined, TQuery> {
  readonly consumer: ConsumerCaller;
}

export interface Reply {
  readonly status: number;
  /** The server makes JSON of it. Undefined means no body. */
  readonly body?: unknown;
  /** Instead of `body`: JSON text, or a file's bytes with a `Content-Type` header. */
  readonly ready?: string | Uint8Array;
  /** Instead of both: text that the handler produces while the server sends it, with a `Content-Type` header. */
  readonly stream?: AsyncIterable<string>;
  readonly headers?: Readonly<Record<string, string>>;
  /** The values of `Set-Cookie` headers. */
  readonly cookies?: readonly string[];
}

export type Handler<TBody = undefined, TQuery = undefined> = (
  context: Context<TBody, TQuery>,
) => Reply | Promise<Reply>;
export type SessionHandler<TBody = undefined, TQuery = undefined> = (
  context: SessionContext<TBody, TQuery>,
) => Reply | Promise<Reply>;
export type DeviceHandler<TBody = undefined, TQuery = undefined> = (
  context: DeviceContext<TBody, TQuery>,
) => Reply | Promise<Reply>;

export type ConsumerHandler<TQuery = undefined> = (context: ConsumerContext<TQuery>) => Reply | Promise<Reply>;

export const ok = (body: unknown, headers?: Readonly<Record<string, string>>): Reply =>
  headers === undefined ? { status: 200, body } : { status: 200, body, headers };
export const created = (body: unknown): Reply => ({ status: 201, body });
export const noContent = (): Reply => ({ status: 204 });

export interface ErrorFacts {
  readonly detail?: string | undefined;
  readonly status?: string | undefined;
  readonly reason?: string | undefined;
  readonly earlierIntentId?: number | undefined;
  readonly reasonNumber?: number | undefined;
  readonly earlierSale?: EarlierSale | undefined;
  readonly errors?: readonly FieldError[] | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The replica lacks the caller. `why` resolves with the error code when the replica is certainly the newest. */
export class UnknownCaller extends Error {
  readonly why: () => Promise<ErrorCode>;
  constructor(why: () => Promise<ErrorCode>) {
    super("The replica lacks the caller.");
    this.name = "UnknownCaller";
    this.why = why;
  }
}

/** A handler throws it to answer with one error code of the catalogue. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;
  constructor(code: ErrorCode, facts: ErrorFacts = {}) {
    super(facts.detail ?? code);
    this.name = "ApiError";
    this.code = code;
    this.facts = facts;
  }
}

/** For an answer after something was done: undefined while the replica is stale. */
export function freshView(
  { deps, device }: Pick<DeviceContext, "deps" | "device">,
  name: PollName,
): Rendered | undefined {
  try {
    return deps.deviceView(name, device);
  } catch (error) {
    if (error instanceof ApiError && error.code === "replica_stale") return undefined;
    throw error;
  }
}
