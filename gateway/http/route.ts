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

/** What a device may call. The registry grants scopes by kind when a device claims a code (design §4, "scopes"). */
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
   * `{name_id}` stands for an id, a positive integer: for anything else the server answers `path_not_found`. `{file}` stands
   * for the name of a page's file.
   */
  readonly path: `/${string}`;
  /** The operation's one name, from here to the SQL: a verb and its object, such as `listDevices`. */
  readonly operation: string;
  /** Only where the contract fixes the id; otherwise `operationIdOf` derives it from path and operation. */
  readonly operationId?: string;
  /** A few words, for lists of operations. */
  readonly summary: string;
  /** What a person needs to know beyond the summary. */
  readonly description?: string;
  /** Use `z.strictObject`, so that the error names an unknown field. */
  readonly body?: TBody;
  /** Whether a client may leave out the body. The handler then gets `{}`. */
  readonly bodyOptional?: boolean;
  /** The maximum bytes of the body, where that is not `LIMITS.bodyBytes`. The description states it. */
  readonly bodyBytes?: number;
  /** `kept`: the body's schema handles text that PostgreSQL cannot store. Without it, the gateway refuses such text. */
  readonly unstorableText?: "kept";
  /**
   * The handler gets the unparsed bytes of a body of any type, because a signature covers bytes. It gets null when the body
   * exceeds its limit: the server does not read such a body, and the handler answers with its own error.
   */
  readonly rawBody?: boolean;
  /**
   * The body is a file that is too long for memory: the handler reads it while it arrives (`stream-body.ts`), up to
   * `bodyBytes`. Only for callers whom the gateway identifies from memory, without a wait.
   */
  readonly streamsBody?: boolean;
  /** The schema of a signed body, for the document only: the service that checks the signature also checks the body. */
  readonly signedBody?: z.ZodType;
  /** The body may also be a form. Then this field contains JSON text, and every other field is text. */
  readonly formJsonField?: string;
  /** A `z.strictObject` of strings and `queryNumber`s. */
  readonly query?: TQuery;
  /** Request headers beyond authorization, as an object of optional strings. */
  readonly headers?: z.ZodObject;
  /** The success answers by status. A `schema` of null means an answer without a body. */
  readonly replies: Readonly<Record<number, ReplyFacts>>;
  /** The error codes of this operation alone. The document adds those of `who`, of bodies and of faults. */
  readonly errors?: readonly ErrorCode[];
  /**
   * The operation changes data that gateways or stations follow. Its answer waits until the change is effective; a header
   * reports when the wait ended before (`gateway/http/response.ts`). A handler of any other row cannot make such a change.
   */
  readonly awaitsEffect?: boolean;
  /** Clients call the operation so often that the server logs its success answers at `debug` only. */
  readonly quiet?: boolean;
  /** The server answers even when all slots are taken, because the answer shows whether this process is healthy. */
  readonly needsNoSlot?: boolean;
  /** The path also accepts an upgrade to a WebSocket (`gateway/live/`). The row describes the answer to a plain GET. */
  readonly upgrades?: boolean;
  /** Left out of the OpenAPI document: pages and their files. */
  readonly undocumented?: boolean;
}

/** What the contract says about a route. Becomes one operation of the OpenAPI document. */
interface RouteFacts<TBody extends Schema = Schema, TQuery extends Schema = Schema> extends RowFacts<TBody, TQuery> {
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
 * Tags of the rows that ignore unknown query parameters. The contract of devices does not mention queries, and providers,
 * probes and browsers may add parameters to the URL.
 */
const OPEN_TO_QUERIES: readonly Tag[] = ["device", "provider", "service"];

/** Whether the server answers an unknown query parameter with an error. */
export function refusesOtherQueries({ tag, query }: Pick<RouteFacts, "tag" | "query">): boolean {
  return query !== undefined || !OPEN_TO_QUERIES.includes(tag);
}

/** The content types that a body may have. */
export function bodyTypesOf({ formJsonField }: Pick<RouteFacts, "formJsonField">): readonly BodyType[] {
  if (formJsonField === undefined) return ["application/json"];
  return ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"];
}

type BodyOf<TBody> = TBody extends z.ZodType ? z.infer<TBody> : undefined;

/** Anyone may call it. `cookie: true` marks a route that sets the session cookie: other origins get an error. */
interface AnyoneRoute<TBody extends Schema, TQuery extends Schema> extends RouteFacts<TBody, TQuery> {
  readonly who: { readonly kind: "anyone"; readonly cookie?: boolean };
  readonly handler: Handler<BodyOf<TBody>, BodyOf<TQuery>>;
}
/** A person's session; `permission` null means any session. */
interface SessionRoute<TBody extends Schema, TQuery extends Schema> extends RouteFacts<TBody, TQuery> {
  readonly who: { readonly kind: "session"; readonly permission: Permission | null };
  readonly handler: SessionHandler<BodyOf<TBody>, BodyOf<TQuery>>;
}
/** For the operator of the installation, who has the platform key. Without a configured key the path does not exist. */
interface PlatformRoute<TBody extends Schema, TQuery extends Schema> extends RouteFacts<TBody, TQuery> {
  readonly who: { readonly kind: "platform" };
  readonly handler: Handler<BodyOf<TBody>, BodyOf<TQuery>>;
}
/**
 * How the gateway handles a blocked device's request: it answers as usual, answers with an error, or forwards the request to
 * the station, which refuses it and keeps the device's report as evidence.
 */
export type Blocked = "answered" | "refused" | "forwarded";
/** A device's credential with this scope. */
interface DeviceRoute<TBody extends Schema, TQuery extends Schema> extends RouteFacts<TBody, TQuery> {
  readonly who: { readonly kind: "device"; readonly scope: DeviceScope; readonly blocked: Blocked };
  readonly handler: DeviceHandler<BodyOf<TBody>, BodyOf<TQuery>>;
}
/** A robotics consumer's credential. The row has no body, because a service must identify the caller before a body is read. */
interface ConsumerRoute<TQuery extends Schema> extends RouteFacts<undefined, TQuery> {
  readonly who: { readonly kind: "consumer" };
  readonly handler: ConsumerHandler<BodyOf<TQuery>>;
}
/** A device's GET that the gateway answers from memory, without a promise or a per-request object (design §2.2). */
export interface PollRoute extends RouteFacts {
  readonly who: { readonly kind: "device"; readonly scope: DeviceScope; readonly blocked: Blocked };
  readonly poll: PollName;
  /** Answers the requests that need more than memory. */
  readonly handler?: DeviceHandler;
}

/** A row as the server and the document use it, without its types: `route` has checked that the handler fits them. */
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

/** The types of a row. The compiler checks the calls of the pages against them (`gateway/web/shared/call.ts`). */
interface TypedRow<TMethod, TPath, TOperation, TBody, TQuery, TReplies, THeaders> {
  /** For the compiler alone: no row has a value here. */
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

/** Marks a row without types. Without the mark, TypeScript would lose the types of the other rows in the same list. */
interface Untyped {
  readonly types?: { readonly untyped: true };
}

/** A row for an external sender that signs the raw body. A service checks the signature. */
interface RawBodyRoute extends RouteFacts<undefined, undefined> {
  readonly who: { readonly kind: "anyone" };
  readonly rawBody: true;
  readonly handler: Handler<Buffer | null>;
}

/** Untyped, because no page sends a raw body. */
export const rawBodyRoute = (row: RawBodyRoute): Route & Untyped => withId(row) as unknown as Route;

/** A row that a person calls with a file as the body. */
interface FileBodyRoute<TQuery extends Schema> extends RouteFacts<undefined, TQuery> {
  readonly who: { readonly kind: "session"; readonly permission: Permission | null };
  readonly streamsBody: true;
  readonly handler: SessionHandler<AsyncIterable<Uint8Array>, BodyOf<TQuery>>;
}

/** Untyped, because pages upload files without `call.ts`, which cannot show progress. */
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
 * `backoffice_list_devices`. For a path outside of `/api/` the first part is `service`.
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
/** A device that is not blocked. */
export const device = (scope: DeviceScope) => ({ kind: "device", scope, blocked: "refused" }) as const;
/** A device, even a blocked one: the answer has the reason (design §4, "blocked device"). */
export const deviceEvenBlocked = (scope: DeviceScope) => ({ kind: "device", scope, blocked: "answered" }) as const;
/** A device, even a blocked one: the gateway forwards its request, and the station refuses it. */
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

/** Replaces each id in the shape of a path. */
const ID = "{}";

/**
 * The right path for a request whose path lacks its trailing slash. The error names the path, and the server never redirects:
 * a client that follows a redirect may turn a POST into a GET. The error names only paths of the route table, with ids as
 * digits, so that an answer repeats nothing else of the request.
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
