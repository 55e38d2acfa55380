/**
 * Makes text from outside safe for people: in a sentence, on a page, in a terminal, in a log. A device or a provider
 * may send any text, and a mark of direction or a line break in it changes how the surrounding text looks.
 *
 * Unsafe characters: controls, line and paragraph separators, all spaces except the ordinary one, marks of direction
 * and other invisible characters, half of a surrogate pair, and characters that Unicode does not define.
 */
const NOT_SAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/**
 * The text with each unsafe character escaped as in JSON (`\u202e`), and each backslash doubled, so that the result is
 * unambiguous.
 */
export function printable(text: string): string {
  return escaped(text.replaceAll("\\", "\\\\"));
}

/**
 * The same for JSON text. The value stays the same, because the escapes are those of JSON. A line end at the end stays.
 */
export function printableJson(json: string): string {
  if (IS_PLAIN.test(json)) return json;
  const end = json.endsWith("\n") ? "\n" : "";
  return escaped(json.slice(0, json.length - end.length)) + end;
}
const IS_PLAIN = /^[ -~]*\n?$/;

/** As `printable` for the first `characters` of the text, with a count of the characters that are left out. */
export function printableStart(text: string, characters: number): string {
  if (text.length <= characters) return printable(text);
  // Does not split a surrogate pair.
  const end = (text.codePointAt(characters - 1) ?? 0) > 0xffff ? characters - 1 : characters;
  return `${printable(text.slice(0, end))}… (${text.length - end} more characters)`;
}

function escaped(text: string): string {
  return text.replaceAll(NOT_SAFE, (unsafe) => SHORT[unsafe] ?? unitsOf(unsafe));
}

function unitsOf(text: string): string {
  return text
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}
