/** Divides chunks of text into physical lines: `\n`, `\r\n` and `\r` end one. The length of a line, and so memory, is bounded. */
import { StatementRefusedError } from "../format.ts";
import { FORMAT_LIMITS } from "../limits.ts";

export interface PhysicalLine {
  /** From 1. */
  readonly number: number;
  readonly text: string;
  /** The characters that end the line; "" for the last line of a file. */
  readonly ending: string;
}

const MARK = "\ufeff";
/** Programs of DOS and CP/M write it after the last line. */
const END_OF_FILE = "\u001a";

export class LineSplitter {
  #rest = "";
  #number = 0;
  /** A search of the rest need not begin before here. */
  #searched = 0;

  /** The lines that the chunk completes. Throws `StatementRefusedError` `line_too_long`. */
  push(chunk: string): PhysicalLine[] {
    const text = this.#rest + chunk;
    const lines: PhysicalLine[] = [];
    let from = 0;
    let feed = feedOrEnd(text, this.#searched);
    let end = returnOrFeed(text, this.#searched, feed);
    while (end < text.length) {
      const isReturn = end !== feed;
      // The next chunk shows whether it is `\r\n`.
      if (isReturn && end + 1 === text.length) break;
      const ending = isReturn ? (end + 1 === feed ? "\r\n" : "\r") : "\n";
      lines.push(this.#line(text.slice(from, end), ending));
      from = end + ending.length;
      if (feed < from) feed = feedOrEnd(text, from);
      end = returnOrFeed(text, from, feed);
    }
    this.#rest = text.slice(from);
    this.#searched = end - from;
    this.#refuseLong(this.#rest);
    return lines;
  }

  /** The last line, when no ending follows it. */
  end(): PhysicalLine[] {
    const text = this.#rest;
    this.#rest = "";
    if (text === "" || text === END_OF_FILE) return [];
    return [text.endsWith("\r") ? this.#line(text.slice(0, -1), "\r") : this.#line(text, "")];
  }

  #line(text: string, ending: string): PhysicalLine {
    this.#refuseLong(text);
    this.#number += 1;
    // The decoder removes the mark at the beginning; a file that was appended has its own.
    return { number: this.#number, text: text.startsWith(MARK) ? text.slice(1) : text, ending };
  }

  #refuseLong(text: string): void {
    if (text.length <= FORMAT_LIMITS.lineCharacters) return;
    const sentence = `Line ${this.#number + 1} is longer than ${FORMAT_LIMITS.lineCharacters} characters, which no line of a statement is; upload the file as the provider made it.`;
    throw new StatementRefusedError("line_too_long", sentence);
  }
}

function feedOrEnd(text: string, from: number): number {
  const index = text.indexOf("\n", from);
  return index < 0 ? text.length : index;
}

/** Searches up to the feed only, so that a file without any `\r` is not searched to its end for each line. */
function returnOrFeed(text: string, from: number, feed: number): number {
  const index = text.slice(from, feed).indexOf("\r");
  return index < 0 ? feed : from + index;
}
