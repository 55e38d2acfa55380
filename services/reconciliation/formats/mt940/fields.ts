/**
 * The fields of MT940 statements: a tag at the start of a line, and all that follows up to the next one. A line of text
 * may begin like a tag by chance (":26:37", the rest of a wrapped time), so a tag counts only in a part where it is allowed.
 */

import type { PhysicalLine } from "../csv/physical-lines.ts";
import { StatementRefusedError } from "../format.ts";
import { FORMAT_LIMITS } from "../limits.ts";

export interface Field {
  /** "20", "60F", "86"; "end" where the block of a statement ends. */
  readonly tag: string;
  /** The physical line of its tag. */
  readonly position: number;
  readonly lines: readonly string[];
}

/** The part of a statement that a tag opens. */
type Part = "outside" | "header" | "entries" | "closing";

/** The tags that can follow in each part. Banks use `NS` in addition to the standard. */
const FOLLOWING: Readonly<Record<Part, ReadonlySet<string>>> = {
  outside: new Set(["20", "61"]),
  header: new Set(["21", "25", "25P", "28", "28C", "60F", "60M", "61", "62F", "62M", "86", "NS", "20"]),
  entries: new Set(["61", "86", "62F", "62M", "NS", "20"]),
  closing: new Set(["61", "62F", "62M", "64", "65", "86", "NS", "20"]),
};
const TAG = /^:(\d\d[A-Z]?|NS):/;
/** "-", and "-}" with what follows the block. */
const END = /^-(?:\}.*)?$/;
/** What banks write after the end: "-XXX" once the closing balance is read. */
const END_AFTER_CLOSING = /^-[A-Z]{0,3}$/;
/** Control characters of a transmission (SOH, ETX, file separators), which are no text. */
const CONTROLS = /(?!\t)\p{Cc}/gu;
const INTERIM_REPORT = /^:(?:34F|13D|90[CD]):|\{2:[IO]942/;
/** The headers of a block, up to its text. */
const BLOCK_HEADERS = /^\{1:.*\{4:/;

export class FieldReader {
  #part: Part = "outside";
  #open: { readonly tag: string; readonly position: number; readonly lines: string[] } | undefined;
  #characters = 0;
  /**
   * A line "-" before the closing balance: wrapped text, or the end of a statement without one. The next tag shows which; the
   * lines of the open field are those before it.
   */
  #dash: { readonly position: number; readonly lines: number } | undefined;

  /** Whether a statement has begun and has not ended. */
  get isInside(): boolean {
    return this.#part !== "outside";
  }

  /** The fields that the lines complete. */
  *read(lines: readonly PhysicalLine[]): Generator<Field> {
    for (const { number, text } of lines) yield* this.#readLine(number, cleaned(text));
  }

  *end(): Generator<Field> {
    if (this.#dash === undefined) yield* this.#completed();
    else yield* this.#endStatement(this.#dash.position);
  }

  *#readLine(number: number, text: string): Generator<Field> {
    if (this.#dash !== undefined && BLOCK_HEADERS.test(text)) yield* this.#endStatement(this.#dash.position);
    if (isInterim(text, this.#part)) throw interimReport();
    const content = this.#part === "outside" ? text.replace(BLOCK_HEADERS, "") : text;
    yield* this.#readContent(number, content);
  }

  *#readContent(number: number, text: string): Generator<Field> {
    if (END.test(text) || (this.#part === "closing" && END_AFTER_CLOSING.test(text))) {
      if (this.#part === "outside") return;
      if (text === "-" && this.#part !== "closing") this.#continue(number, text, true);
      else yield* this.#endStatement(number);
      return;
    }
    const tag = this.#tagOf(text);
    if (tag === undefined) this.#continue(number, text);
    else {
      if (tag === "20" && this.#dash !== undefined) yield* this.#endStatement(this.#dash.position);
      this.#dash = undefined;
      yield* this.#completed();
      this.#part = partOf(tag, this.#part);
      this.#open = { tag, position: number, lines: [text.slice(tag.length + 2)] };
      this.#characters = text.length;
    }
  }

  #tagOf(text: string): string | undefined {
    const tag = TAG.exec(text)?.[1];
    if (tag === undefined || !FOLLOWING[this.#part].has(tag)) return undefined;
    // An entry in the wrong place must not be lost, but wrapped text in that place is not an entry.
    if (tag === "61" && this.#part !== "header" && this.#part !== "entries" && !/^:61:\d{6}/.test(text))
      return undefined;
    // The rest of a wrapped time, not a reference.
    return tag === "20" && this.#part === "entries" && /^:20:\d\d(?:\D|$)/.test(text) ? undefined : tag;
  }

  *#endStatement(position: number): Generator<Field> {
    if (this.#dash !== undefined && this.#open !== undefined) this.#open.lines.length = this.#dash.lines;
    this.#dash = undefined;
    yield* this.#completed();
    this.#part = "outside";
    yield { tag: "end", position, lines: [] };
  }

  #continue(number: number, text: string, isDash = false): void {
    if (this.#open === undefined) return;
    if (isDash) this.#dash ??= { position: number, lines: this.#open.lines.length };
    this.#characters += text.length + 1;
    if (this.#characters > FORMAT_LIMITS.lineCharacters)
      throw new StatementRefusedError(
        "line_too_long",
        `The field :${this.#open.tag}: before line ${number} has more than ${FORMAT_LIMITS.lineCharacters} characters, more than any real statement has.`,
      );
    this.#open.lines.push(text);
  }

  *#completed(): Generator<Field> {
    if (this.#open === undefined) return;
    const { tag, position, lines } = this.#open;
    this.#open = undefined;
    while (lines.length > 1 && lines.at(-1)?.trim() === "") lines.pop();
    yield { tag, position, lines };
  }
}

function partOf(tag: string, part: Part): Part {
  if (tag === "20") return "header";
  if (tag.startsWith("60")) return "entries";
  if (tag === "61") return part === "header" ? "entries" : part;
  return tag.startsWith("62") ? "closing" : part;
}

function cleaned(text: string): string {
  if (text.includes("\0"))
    throw new StatementRefusedError(
      "not_text",
      "The file has NUL characters: declare its encoding, or download it again.",
    );
  return text.replaceAll(CONTROLS, "");
}

/** MT942 reports what has happened since the last statement. Its special fields are between the header and the entries. */
function isInterim(text: string, part: Part): boolean {
  return part !== "entries" && part !== "closing" && INTERIM_REPORT.test(text);
}

/** Throws the refusal of a file whose head is that of an MT942. */
export function refuseInterimReport(head: string): void {
  const lines = head.split(/\r\n|\n|\r/);
  if (lines.some((line) => /:20:/.test(line)) && lines.some((line) => INTERIM_REPORT.test(line))) throw interimReport();
}

function interimReport(): StatementRefusedError {
  return new StatementRefusedError(
    "not_a_statement",
    "The file is an MT942, an interim report and no statement, because its entries can still change: ask the bank for MT940.",
  );
}
