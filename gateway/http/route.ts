/** The rows of the route table, and who may call them. */
import type { z } from "zod";
import type { Permission } from "../../services/bus/messages/caller.ts";
import type { PollName } from "../read-model/rendered.ts";
import type { ErrorCode } from "./errors.ts";
import type {
  ConsumerContext,
  ConsumerHandler,
  DeviceContext,
  DeviceHandler,
  Handler,
  Reply,
  SessionContext,
  SessionHandler,
} from "./handler-context.ts";

/** What a device may call; the registry grants them by kind when a code is claimed (design §4, "scopes"). */
export const DEVICE_SCOPES = [
  "device:read",
  "device:heartbeat",
  "assignment:read",
  "assignment:report",
  "display:read",
] as const;
export type DeviceScope = (typeof DEVICE_SCOPES)[number];

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
export type BodyType = "application/json" | "application/x-www-form-urlencoded" | "multipart/form-data";
type Schema = z.ZodType | undefined;

/** What the contract says about a row, apart from its tag. */
interface RowFacts<TBody extends Schema = Schema, TQuery extends Schema = Schema> {
  readonly method: Method;
  /**
   * With `{name_id}` for the ids in it; each is a positive integer, anything else there is `path_not_found`. `{file}` is the
   * name of a file of the pages.
   */
  readonly path: `/${string}`;
  /** The operation's one name, from here to the SQL: a verb and its object, such as `listDevices`. */
  readonly operation: string;
  /** Only where the contract fixes it; else it is derived from path and operation (`operationIdOf`). */
  readonly operationId?: string;
  /** A few words for lists. */
  readonly summary: string;
  /** What a person needs to know beyond the summary. */
  readonly description?: string;
  /** Use `z.strictObject`, so that an unknown field is refused by name. */
  readonly body?: TBody;
  /** Whether the body may be left out altogether; it then counts as `{}`. */
  readonly bodyOptional?: boolean;
  /** The most bytes of the body, where it may be longer than most (`LIMITS.bodyBytes`); the description says so. */
  readonly bodyBytes?: number;
  /** `kept`: the body's schema handles text that PostgreSQL cannot store. Without it, the gateway refuses such text. */
  readonly unstorableText?: "kept";
  /**
   * The handler gets the unparsed bytes of the body, of any type, because a signature covers bytes. Null when the body exceeds
   * its limit: it is not read, and the handler refuses it with its own error.
   */
  readonly rawBody?: boolean;
  /**
   * The handler reads the body while it arrives (`stream-body.ts`), of `bodyBytes` at most: a file that is too long for
   * memory. For callers that are found without a wait.
   */
  readonly streamsBody?: boolean;
  /** The schema of a signed body, for the document only: the service that checks the signature also checks the body. */
  readonly signedBody?: z.ZodType;
  /** JSON unless the contract says otherwise. */
  readonly bodyTypes?: readonly BodyType[];
  /** A `z.strictObject` of strings and `queryNumber`s. */
  readonly query?: TQuery;
  /** Request headers beyond authorization, as an object of optional strings. */
  readonly headers?: z.ZodObject;
  /** The good answers by status; null is an answer without a body. */
  readonly replies: Readonly<Record<number, ReplyFacts>>;
  /** The codes of the refusals that only this operation has. The document adds those of `who`, of bodies and of faults. */
  readonly errors?: readonly ErrorCode[];
  /**
   * It changes what gateways or stations follow. Its answer waits until the change is effective, and says when it is not yet
   * (`gateway/http/response.ts`). A handler of any other row cannot ask for such a change.
   */
  readonly awaitsEffect?: boolean;
  /** Called so often that its good answers are logged at `debug` only. */
  readonly quiet?: boolean;
  /** Answered also when all slots are taken, because it shows whether this process is healthy. */
  readonly needsNoSlot?: boolean;
  /** The path also takes an upgrade to a WebSocket (`gateway/live/`); the row says what a plain GET gets. */
  readonly upgrades?: boolean;
  /** Left out of the OpenAPI document: pages and their files. */
  readonly undocumented?: boolean;
}

/** What the contract says about a route. Becomes one operation of the OpenAPI document. */
export interface RouteFacts<TBody extends Schema = Schema, TQuery extends Schema = Schema>
  extends RowFacts<TBody, TQuery> {
  readonly tag: Tag;
}

export interface ReplyFacts {
  readonly description: string;
  readonly schema: z.ZodType | null;
  /** Another media type than JSON that the body may have. */
  readonly textType?: string;
  /** Response headers beyond the common ones. */
  readonly headers?: z.ZodObject;
  readonly examples?: Readonly<Record<string, { readonly summary?: string; readonly value: unknown }>>;
}

export const TAGS = [
  "device",
  "session",
  "cashier",
  "backoffice",
  "robotics",
  "provider",
  "reconciliation",
  "platform",
  "service",
] as const;
export type Tag = (typeof TAGS)[number];

/**
 * Tags of the rows whose callers we do not write for: devices by a contract that is silent about queries, providers that
 * add to the address they call, probes and browsers. A query there that no row has is ignored.
 */
const OPEN_TO_QUERIES: readonly Tag[] = ["device", "provider", "service"];

/** Whether a query that the row does not have is refused. */
export function refusesOtherQueries({ tag, query }: Pick<RouteFacts, "tag" | "query">): boolean {
  return query !== undefined || !OPEN_TO_QUERIES.includes(tag);
}

type BodyOf<TBody> = TBody extends z.ZodType ? z.infer<TBody> : undefined;

/** Anyone may call it. `cookie: true` marks a route that sets the session cookie: foreign origins are refused. */
export interface AnyoneRoute<TBody extends Schema, TQuery extends Schema> extends RouteFacts<TBody, TQuery> {
  readonly who: { readonly kind: "anyone"; readonly cookie?: boolean };
  readonly handler: Handler<BodyOf<TBody>, BodyOf<TQuery>>;
}
/** A person's session; `permission` null means any session. */
export interface SessionRoute<TBody extends Schema, TQuery extends Schema> extends RouteFacts<TBody, TQuery> {
  readonly who: { readonly kind: "session"; readonly permission: Permission | null };
  readonly handler: SessionHandler<BodyOf<TBody>, BodyOf<TQuery>>;
}
/** The operator of the installation, with the platform key; where none is set, there is nothing at the path. */
export interface PlatformRoute<TBody extends Schema, TQuery extends Schema> extends RouteFacts<TBody, TQuery> {
  readonly who: { readonly kind: "platform" };
  readonly handler: Handler<BodyOf<TBody>, BodyOf<TQuery>>;
}
/**
 * What becomes of a blocked device: it is answered, refused at once, or forwarded to the station, which refuses it and keeps
 * what it says.
 */
export type Blocked = "answered" | "refused" | "forwarded";
/** A device's credential with this scope. */
export interface DeviceRoute<TBody extends Schema, TQuery extends Schema> extends RouteFacts<TBody, TQuery> {
  readonly who: { readonly kind: "device"; readonly scope: DeviceScope; readonly blocked: Blocked };
  readonly handler: DeviceHandler<BodyOf<TBody>, BodyOf<TQuery>>;
}
/** A robotics consumer's credential. The row has no body, because a service identifies the caller before anything is read. */
export interface ConsumerRoute<TQuery extends Schema> extends RouteFacts<undefined, TQuery> {
  readonly who: { readonly kind: "consumer" };
  readonly handler: ConsumerHandler<BodyOf<TQuery>>;
}
/** A device's read that is answered from memory without a promise or a per-request object (design §2.2). */
export interface PollRoute extends RouteFacts {
  readonly who: { readonly kind: "device"; readonly scope: DeviceScope; readonly blocked: Blocked };
  readonly poll: PollName;
  /** For the answers that memory alone cannot give. */
  readonly handler?: DeviceHandler;
}

/** A row as the server and the document see it: its body's type was checked when `route` built it. */
export type Route =
  | (RouteFacts & Identified & { readonly who: Who; readonly handler: ErasedHandler; readonly poll?: undefined })
  | (PollRoute & Identified);
interface Identified {
  readonly operationId: string;
}
export type Who =
  | AnyoneRoute<Schema, Schema>["who"]
  | SessionRoute<Schema, Schema>["who"]
  | PlatformRoute<Schema, Schema>["who"]
  | DeviceRoute<Schema, Schema>["who"]
  | ConsumerRoute<Schema>["who"];
export type ErasedHandler = (
  context: SessionContext<unknown, unknown> & DeviceContext<unknown, unknown> & ConsumerContext<unknown>,
) => Reply | Promise<Reply>;

/** The types of a row that its caller needs: what pages call is checked against them (`gateway/web/shared/call.ts`). */
interface TypedRow<TMethod, TPath, TOperation, TBody, TQuery, TReplies, THeaders> {
  /** For the compiler alone: no row has it. */
  readonly types?: {
    readonly method: TMethod;
    readonly path: TPath;
    readonly operation: TOperation;
    readonly body: TBody;
    readonly query: TQuery;
    readonly replies: TReplies;
    readonly headers: THeaders;
  };
}

/** A row without types would hide those of the rows beside it. */
interface Untyped {
  readonly types?: { readonly untyped: true };
}

/** A row for an outside party that signs the raw body. A service behind the bus checks the signature. */
export interface RawBodyRoute extends RouteFacts<undefined, undefined> {
  readonly who: { readonly kind: "anyone" };
  readonly rawBody: true;
  readonly handler: Handler<Buffer | null>;
}

/** No page sends one. */
export const rawBodyRoute = (row: RawBodyRoute): Route & Untyped => withId(row) as unknown as Route;

/** A row of a person whose body is a file. */
export interface FileBodyRoute<TQuery extends Schema> extends RouteFacts<undefined, TQuery> {
  readonly who: { readonly kind: "session"; readonly permission: Permission | null };
  readonly streamsBody: true;
  readonly handler: SessionHandler<AsyncIterable<Uint8Array>, BodyOf<TQuery>>;
}

/** Pages send files in their own way, because a call shows no progress. */
export const fileBodyRoute = <TQuery extends Schema = undefined>(row: FileBodyRoute<TQuery>): Route & Untyped =>
  withId(row) as unknown as Route;

/** Checks that a handler fits the row's body, query and caller. */
export function route<
  const TMethod extends Method,
  const TPath extends `/${string}`,
  const TOperation extends string,
  const TReplies extends RouteFacts["replies"],
  TBody extends Schema = undefined,
  TQuery extends Schema = undefined,
  THeaders extends z.ZodObject | undefined = undefined,
>(
  row: (
    | AnyoneRoute<TBody, TQuery>
    | SessionRoute<TBody, TQuery>
    | PlatformRoute<TBody, TQuery>
    | DeviceRoute<TBody, TQuery>
    | ConsumerRoute<TQuery>
  ) & {
    readonly method: TMethod;
    readonly path: TPath;
    readonly operation: TOperation;
    readonly replies: TReplies;
    readonly headers?: THeaders;
  },
): Route & TypedRow<TMethod, TPath, TOperation, TBody, TQuery, TReplies, THeaders> {
  return withId(row) as unknown as Route;
}

/**
 * The operation id in the document, metrics and logs: the API of the path and the operation's name, as in
 * `backoffice_list_devices`. What is below no API belongs to the service.
 */
function operationIdOf({ path, operation }: Pick<RouteFacts, "path" | "operation">): string {
  const api = /^\/api\/(\w+)\//.exec(path)?.[1] ?? "service";
  return `${api}_${operation.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
}

const withId = <TRow extends RouteFacts>(row: TRow) => ({ ...row, operationId: row.operationId ?? operationIdOf(row) });

/** A row whose answer comes from memory. */
export const poll = <
  const TMethod extends Method,
  const TPath extends `/${string}`,
  const TOperation extends string,
  const TReplies extends RouteFacts["replies"],
>(
  row: PollRoute & {
    readonly method: TMethod;
    readonly path: TPath;
    readonly operation: TOperation;
    readonly replies: TReplies;
  },
): Route & TypedRow<TMethod, TPath, TOperation, undefined, undefined, TReplies, undefined> => withId(row);

export const anyone = { kind: "anyone" } as const;
export const anyoneWithCookie = { kind: "anyone", cookie: true } as const;
/** Builds the rows of an API whose callers are people with one permission. */
function routeOf(tag: Tag, permission: Permission) {
  const who = session(permission);
  return <
    const TMethod extends Method,
    const TPath extends `/${string}`,
    const TOperation extends string,
    const TReplies extends RouteFacts["replies"],
    TBody extends Schema = undefined,
    TQuery extends Schema = undefined,
    THeaders extends z.ZodObject | undefined = undefined,
  >(
    row: RowFacts<TBody, TQuery> & {
      readonly method: TMethod;
      readonly path: TPath;
      readonly operation: TOperation;
      readonly replies: TReplies;
      readonly headers?: THeaders;
      readonly handler: SessionHandler<BodyOf<TBody>, BodyOf<TQuery>>;
    },
  ): Route & TypedRow<TMethod, TPath, TOperation, TBody, TQuery, TReplies, THeaders> =>
    withId({ ...row, tag, who }) as unknown as Route;
}

/** The operator, who has the platform key. */
export const platform = { kind: "platform" } as const;
/** A robotics consumer that the owner has registered. */
export const consumer = { kind: "consumer" } as const;
/** Any person who is logged in. */
export const anySession = { kind: "session", permission: null } as const;
export const session = (permission: Permission) => ({ kind: "session", permission }) as const;
/** A row of the owners' API. */
export const backofficeRoute = routeOf("backoffice", "organization.manage");
/** A row of the cashiers' API. */
export const cashierRoute = routeOf("cashier", "payments.collect");
/** A row of the API for reconciliation. */
export const reconciliationRoute = routeOf("reconciliation", "reconciliation.manage");
/** A device in good standing. */
export const device = (scope: DeviceScope) => ({ kind: "device", scope, blocked: "refused" }) as const;
/** A device whether blocked or not: the answer says why (design §4, "blocked device"). */
export const deviceEvenBlocked = (scope: DeviceScope) => ({ kind: "device", scope, blocked: "answered" }) as const;
/** A device whose request reaches its station even when the device is blocked; the station refuses it. */
export const deviceForwardedBlocked = (scope: DeviceScope) =>
  ({ kind: "device", scope, blocked: "forwarded" }) as const;

/** The names between braces, in order. */
export function pathParameters(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string);
}

const PATH_ID = /^[1-9]\d{0,14}$/;

/** Whether a segment of a path is an id: a positive integer without a leading zero. */
export function isPathId(segment: string): boolean {
  return PATH_ID.test(segment);
}

/** Stands for an id in the shape of a path. */
const ID = "{}";

/**
 * The right path for a request whose path lacks its trailing slash. It is named in an error and never redirected to: a
 * client that follows a redirect may turn a POST into a GET. Only paths of the route table are named, with ids as digits,
 * so that nothing else of a request comes back in its answer.
 */
export class MissingSlashes {
  readonly #shapes: ReadonlySet<string>;

  /** `hasKey`: without a platform key the platform's paths do not exist. */
  constructor(routes: readonly Route[], { hasKey }: { readonly hasKey: boolean }) {
    const served = routes.filter(({ path, who }) => path.endsWith("/") && (hasKey || who.kind !== "platform"));
    this.#shapes = new Set(served.map(({ path }) => path.replaceAll(/\{\w+\}/g, ID)));
  }

  /** Undefined when the path with a slash at its end is not in the route table either. */
  rightPath(path: string): string | undefined {
    if (path.includes(ID)) return undefined;
    const segments = path.split("/").map((segment) => (isPathId(segment) ? ID : segment));
    return this.#shapes.has(`${segments.join("/")}/`) ? `${path}/` : undefined;
  }
}
