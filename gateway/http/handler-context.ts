/**
 * What a handler gets and what it gives back. A handler returns a reply or throws: `Refusal` (below), or what the bus
 * throws by itself (`RefusedError`, `UnavailableError`). The server turns each into a response in one place.
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
  /** The newest state of a station from the replica; undefined when it has no such station. Throws `replica_stale`. */
  station(stationId: number): StationState | undefined;
  /**
   * The same once the replica is known to have all that the station committed before this call, about half a second later: for
   * an error that no later try corrects (design §2.2).
   */
  newestStation(stationId: number): Promise<StationState | undefined>;
  /** Whether `station` and `switches` have an answer. For the answer of a change that is done: it must not be refused. */
  isFresh(stationId: number): boolean;
  /** What to refuse a caller with whose station the replica does not have; asks the registry. */
  whyNoStation(caller: SessionEntry, stationId: number): Promise<"not_found" | "replica_stale">;
  /** The kill switches that are on. Throws `replica_stale`. */
  switches(): KillSwitches;
  /** When a companion last asked for its assignment, by the notes of all gateways; null when never. */
  readonly polledAtMs: (deviceId: number) => number | null;
  /** A device's view as text, made once per commit. Throws `replica_stale`, or `credential_invalid` for a device that is gone. */
  deviceView(name: PollName, device: DeviceCaller): Rendered;
  /** Throws `replica_stale` unless everything that a device's request depends on is fresh. */
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

/** Whether all changes that one request made are effective at this gateway; noted by its calls of services (`gateway-bus.ts`). */
export interface Effect {
  isEffective: boolean;
}

export interface GatewayBus {
  /**
   * Asks a service. When the reply carries a `barrier`, waits (bounded) until this gateway's replicas show the change; only a
   * route with `awaitsEffect` may ask for such a change, and its answer says when the wait ended before.
   */
  call<TRequest extends z.ZodType, TReply extends z.ZodType>(
    operation: Operation<TRequest, TReply>,
    request: z.infer<TRequest>,
    timeoutMs?: number,
  ): Promise<z.infer<TReply>>;
  /**
   * Sends a command to a station's actor and waits (bounded) until this gateway's replica shows the commit. A reply
   * with `ok: false` is thrown as a `Refusal` with its code, status and reason.
   */
  command(
    stationId: number,
    command: StationCommandRequest,
    options?: { readonly timeoutMs?: number },
  ): Promise<AcceptedResponse>;
  /** Stores all bytes of a file or none. Throws `storage_low` or `UnavailableError`, or the error of `bytes`. */
  storeFile(bytes: AsyncIterable<Uint8Array>): Promise<StoredFile>;
  /** Deletes a stored file that no request has named; one that cannot be deleted goes by age. */
  discardFile(name: string): Promise<void>;
  /** This bus for one request: it notes in `effect` when a change is not yet effective. */
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
  /** What is at `{file}` of the path. */
  readonly file: () => string;
  /** A request header by its lower-case name; the empty string when it was not sent. */
  header(name: string): string;
  readonly requestId: string;
  /** The client's address as text; a forwarded one only when it came from a configured proxy. */
  readonly address: string;
  /** Whether the client's own connection is encrypted, for the cookie's `Secure`. */
  readonly secure: boolean;
  readonly deps: HandlerDeps;
}

/** Of a route with `who: session(...)`: who acts. Pass `caller` on to the services as it is. */
export interface SessionContext<TBody = undefined, TQuery = undefined> extends Context<TBody, TQuery> {
  readonly caller: SessionEntry;
}

export interface DeviceCaller {
  /** Where its credential stands in the replica; only a hint for the cache of views. */
  readonly slot: number;
  readonly deviceId: number;
  readonly stationId: number;
  readonly scopes: readonly string[];
}

/** Of a route with `who: device(...)`. */
export interface DeviceContext<TBody = undefined, TQuery = undefined> extends Context<TBody, TQuery> {
  readonly device: DeviceCaller;
}

/** Of a route with `who: consumer`: whose credential it is, as the robotics service has just said. Pass it on to the services as it is. */
export interface ConsumerContext<TQuery = undefined> extends Context<undefined, TQuery> {
  readonly consumer: ConsumerCaller;
}

export interface Reply {
  readonly status: number;
  /** Becomes JSON; undefined is no body. */
  readonly body?: unknown;
  /** Instead of `body`: JSON text that is ready, or a file's bytes with its own `Content-Type` header. */
  readonly ready?: string | Uint8Array;
  /** Instead of both: text that is made while it is sent, with its own `Content-Type` header. */
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

export interface RefusalFacts {
  readonly detail?: string | undefined;
  readonly status?: string | undefined;
  readonly reason?: string | undefined;
  readonly earlierIntentId?: number | undefined;
  readonly earlierSale?: EarlierSale | undefined;
  readonly errors?: readonly FieldError[] | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Thrown by a handler to answer with one code of the catalogue. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly facts: RefusalFacts;
  constructor(code: ErrorCode, facts: RefusalFacts = {}) {
    super(facts.detail ?? code);
    this.name = "Refusal";
    this.code = code;
    this.facts = facts;
  }
}
