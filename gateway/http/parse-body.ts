/** From the bytes of a body to a value: JSON, or a form whose fields become one. */
import { getParts } from "uWebSockets.js";
import { LIMITS } from "../limits.ts";
import { findBrokenText } from "./broken-text.ts";
import { Refusal } from "./handler-context.ts";
import type { BodyType } from "./route.ts";

/** Throws `unsupported_media_type` when a route does not take the type, and `invalid_request` when the body is not of it. */
export function parseBody(body: Buffer, contentType: string, accepted: readonly BodyType[]): unknown {
  const type = contentType.split(";")[0]?.trim().toLowerCase() as BodyType;
  if (!accepted.includes(type)) {
    throw new Refusal("unsupported_media_type", {
      detail: `Send the body as ${accepted.join(" or ")}.`,
      headers: { Accept: accepted.join(", ") },
    });
  }
  return parseAs(type, body, contentType);
}

/** Throws `invalid_request` for text that no service can store. */
export function requireStorableText(value: unknown): void {
  const broken = findBrokenText(value);
  if (broken !== undefined) throw invalid(broken, "Text must not hold the character NUL or half a surrogate pair.");
}

function parseAs(type: BodyType, body: Buffer, contentType: string): unknown {
  if (type === "multipart/form-data") return parseMultipart(body, contentType);
  const text = decodeUtf8(body);
  return type === "application/json" ? parseJson(text, "") : parseUrlEncoded(text);
}

function invalid(pointer: string, detail: string): Refusal {
  return new Refusal("invalid_request", { errors: [{ pointer, detail }] });
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalid("", "The body is not UTF-8.");
  }
}

/** Parses JSON that is nested at most so deep. The depth is counted first, before anything is built from it. */
function parseJson(text: string, pointer: string): unknown {
  if (nestingOf(text) > LIMITS.jsonDepth) throw invalid(pointer, `Nested deeper than ${LIMITS.jsonDepth} levels.`);
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(pointer, "Not valid JSON.");
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

/** In a form, a field that is to be an object carries it as JSON text. */
function parseUrlEncoded(text: string): unknown {
  return fromFields([...new URLSearchParams(text)]);
}

function parseMultipart(body: Buffer, contentType: string): unknown {
  const parts = getParts(body, contentType);
  if (parts === undefined) throw invalid("", "Not a valid multipart body.");
  return fromFields(parts.map((part) => [part.name ?? "", decodeUtf8(new Uint8Array(part.data))]));
}

function fromFields(fields: readonly (readonly [string, string])[]): Record<string, unknown> {
  const value: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const [name, text] of fields) {
    value[name] = /^\s*[{[]/.test(text)
      ? parseJson(text, `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`)
      : text;
  }
  return value;
}
