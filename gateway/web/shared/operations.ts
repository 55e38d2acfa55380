/**
 * The operations that pages can call, as types of the route table. A page's script must not contain the table itself, so
 * import from here only with `import type`.
 */
import type { z } from "zod";
import type { ErrorCode } from "../../http/errors.ts";
import type { ErrorBody } from "../../http/shared-schemas.ts";
import type { TypedRoute } from "../../routes.ts";

export type { ErrorBody, ErrorCode };
export type FieldErrorCode = NonNullable<ErrorBody["errors"]>[number]["code"];

interface Facts {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly query: unknown;
  readonly replies: object;
  readonly headers: unknown;
}
type FactsOf<T> = T extends { readonly types?: infer F } ? F : never;
type Row = Extract<FactsOf<TypedRoute>, Facts>;
/** Operations by name, so that the compiler looks one up and does not search. Routes that a loop defines have several names. */
type Operations = { readonly [R in Row as `${R["method"]} ${R["path"]}`]: R };

/** An operation by method and path, as in the API document: `GET /api/cashier/v1/stations/`. */
export type OperationName = keyof Operations;

type Parameters<P extends string> = P extends `${string}{${infer Name}}${infer Rest}` ? Name | Parameters<Rest> : never;
type Input<T> = T extends z.ZodType ? z.input<T> : undefined;
type PathPart<P extends string> = [Parameters<P>] extends [never]
  ? object
  : { readonly path: Readonly<Record<Parameters<P>, number>> };
type BodyPart<T> = [T] extends [undefined] ? object : { readonly body: T };
/** A query is text; `call` converts numbers to text. */
type QueryPart<T> = [T] extends [undefined]
  ? object
  : { readonly query?: { readonly [K in keyof T]?: T[K] | string | number | undefined } };
/** The idempotency key, made before the click, so that a repeated click is the same request (see `newKey`). */
type KeyPart<T> = T extends { readonly shape: { readonly "Idempotency-Key": unknown } }
  ? { readonly key: string }
  : object;

/** The request that a call of this operation needs. */
export type RequestOf<N extends OperationName> = PathPart<N> &
  BodyPart<Input<Operations[N]["body"]>> &
  QueryPart<Input<Operations[N]["query"]>> &
  KeyPart<Operations[N]["headers"]>;

type GoodReply<R> = R extends { readonly schema: infer S } ? (S extends z.ZodType ? z.output<S> : null) : never;
type GoodReplies<R> = { [K in keyof R]: K extends 304 | 308 ? never : GoodReply<R[K]> }[keyof R];

/** The body of a successful answer; null for an answer without a body. */
export type ReplyOf<N extends OperationName> = GoodReplies<Operations[N]["replies"]>;
