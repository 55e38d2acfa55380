/**
 * Text from outside, safe to be read by people: in a sentence, on a page, in a terminal, in a log. A device or a provider
 * may send whatever it likes, and a mark of direction or a line break in it changes how the text around it is read.
 *
 * What is not safe: controls, line and paragraph separators, spaces that seem to be others, marks of direction and all
 * else that is not shown, half of a surrogate pair, and what has no meaning that all agree on.
 */
const NOT_SAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** The text with each unsafe character as JSON escapes it (`\u202e`), and a backslash doubled, so that nothing is ambiguous. */
export function printable(text: string): string {
  return escaped(text.replaceAll("\\", "\\\\"));
}

/** The same for a text that is JSON: the value stays the same, because JSON reads its own escapes. Its end of line stays. */
export function printableJson(json: string): string {
  if (IS_PLAIN.test(json)) return json;
  const end = json.endsWith("\n") ? "\n" : "";
  return escaped(json.slice(0, json.length - end.length)) + end;
}
const IS_PLAIN = /^[ -~]*\n?$/;

/** As `printable`, and no longer than `characters`; what is left out is counted. */
export function printableStart(text: string, characters: number): string {
  if (text.length <= characters) return printable(text);
  // A surrogate pair is not divided.
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
