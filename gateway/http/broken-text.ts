/** Text that JSON can carry but a database cannot store; refused at the door, so that no service has to think of it. */

/** The JSON pointer to the first text with a NUL or half of a surrogate pair, or undefined when all text is whole. */
export function findBrokenText(value: unknown, pointer = ""): string | undefined {
  if (typeof value === "string") return isBroken(value) ? pointer : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const at = `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (isBroken(key)) return pointer;
    const found = findBrokenText(inner, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isBroken(text: string): boolean {
  return text.includes("\u0000") || !text.isWellFormed();
}
