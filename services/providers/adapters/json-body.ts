/** JSON that came from outside, for use in PostgreSQL's text and jsonb, which hold neither NUL nor half a character. */

/** Undefined when the bytes are no JSON in UTF-8, or hold what cannot be stored. */
export function parseJsonBody(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body), (name, value: unknown) => {
      if (isStorable(name) && (typeof value !== "string" || isStorable(value))) return value;
      throw new SyntaxError("The text cannot be stored.");
    });
  } catch {
    return undefined;
  }
}

function isStorable(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}
