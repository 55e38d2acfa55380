/**
 * Turns the bytes of a body or a query into a valid value: parses JSON or a form, then checks the schema. A JSON pointer in the
 * error names each invalid field (design §4, "bodies").
 */
import { getParts } from "uWebSockets.js";
import { z } from "zod";
import { type FieldErrorCode, FOR_FIELD_ERRORS, fieldErrors, pointerTo } from "../../services/bus/field-errors.ts";
import { LIMITS } from "../limits.ts";
import { ApiError } from "./handler-context.ts";
import { type BodyType, bodyTypesOf, type Route, refusesOtherQueries } from "./route.ts";

/** Throws `unsupported_media_type` for a type that the route does not accept, `invalid_request` for a body of another type. */
export function parseBody(body: Buffer, contentType: string, route: Pick<Route, "formJsonField">): unknown {
  const { formJsonField } = route;
  const accepted = bodyTypesOf(route);
  const type = contentType.split(";")[0]?.trim().toLowerCase() as BodyType;
  if (!accepted.includes(type)) {
    throw new ApiError("unsupported_media_type", {
      detail: `Send the body as ${accepted.join(" or ")}.`,
      headers: { Accept: accepted.join(", ") },
    });
  }
  if (type === "multipart/form-data") return fromFields(multipartFields(body, contentType), formJsonField);
  const text = decodeUtf8(body);
  return type === "application/json" ? parseJson(text, "") : fromFields([...new URLSearchParams(text)], formJsonField);
}

/** Throws `invalid_request` for text that no service can store. */
export function requireStorableText(value: unknown): void {
  const broken = findBrokenText(value);
  if (broken !== undefined)
    throw invalid(broken, "not_text", "Text must not hold the character NUL or half a surrogate pair.");
}

function invalid(pointer: string, code: FieldErrorCode, detail: string): ApiError {
  return new ApiError("invalid_request", { errors: [{ pointer, code, detail }] });
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalid("", "not_text", "The body is not UTF-8.");
  }
}

/** Parses JSON of bounded depth. It counts the depth first, before it builds a value. */
function parseJson(text: string, pointer: string): unknown {
  if (nestingOf(text) > LIMITS.jsonDepth)
    throw invalid(pointer, "not_json", `Nested deeper than ${LIMITS.jsonDepth} levels.`);
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(pointer, "not_json", "Not valid JSON.");
  }
}

/** The deepest nesting of brackets outside of strings. */
export function nestingOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (inString) {
      if (character === "\\") at += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === "{" || character === "[") {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (character === "}" || character === "]") depth -= 1;
  }
  return deepest;
}

type FormField = readonly [name: string, text: string];

function multipartFields(body: Buffer, contentType: string): readonly FormField[] {
  const parts = getParts(body, contentType);
  if (parts === undefined) throw invalid("", "wrong_format", "Not a valid multipart body.");
  return parts.map((part) => [part.name ?? "", decodeUtf8(new Uint8Array(part.data))]);
}

/** The fields of a form as one object. Only `jsonField` contains JSON text. */
function fromFields(fields: readonly FormField[], jsonField: string | undefined): Record<string, unknown> {
  const value: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const [name, text] of fields) value[name] = name === jsonField ? parseJson(text, pointerTo([name])) : text;
  return value;
}

/** The JSON pointer to the first text with a NUL or half of a surrogate pair, or undefined when all text is whole. */
export function findBrokenText(value: unknown, pointer = ""): string | undefined {
  if (typeof value === "string") return isBroken(value) ? pointer : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    if (isBroken(key)) return pointer;
    const found = findBrokenText(inner, pointer + pointerTo([key]));
    if (found !== undefined) return found;
  }
  return undefined;
}

function isBroken(text: string): boolean {
  return text.includes("\u0000") || !text.isWellFormed();
}

export function validate<TSchema extends z.ZodType>(schema: TSchema, value: unknown): z.infer<TSchema> {
  const parsed = schema.safeParse(value, FOR_FIELD_ERRORS);
  if (parsed.success) return parsed.data;
  throw new ApiError("invalid_request", { errors: fieldErrors(parsed.error.issues).slice(0, LIMITS.fieldErrors) });
}

const noQuerySchema = z.strictObject({});

/** The valid query of a row; undefined for a row without a query schema. Throws `invalid_request`. */
export function queryOf(route: Route, query: string): unknown {
  if (route.query !== undefined) return validate(route.query, parseQuery(query));
  if (query !== "" && refusesOtherQueries(route)) validate(noQuerySchema, parseQuery(query));
  return undefined;
}

/**
 * A query as an object of strings that the services can store. A name that occurs twice is an error, because it is not clear
 * which value counts.
 */
function parseQuery(query: string): Record<string, string> {
  const values: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of new URLSearchParams(query)) {
    if (name in values) {
      throw invalid(pointerTo([name]), "wrong_format", "Given more than once.");
    }
    values[name] = value;
  }
  requireStorableText(values);
  return values;
}
