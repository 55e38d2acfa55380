/**
 * Decodes bytes to text. The encoding is declared: `detectEncoding` gives candidates, of which a person confirms one. Decoding is
 * strict: the file is refused when a byte is no text in the declared encoding; the refusal names the offset.
 */
import iconvLite from "iconv-lite";
import { DECODERS, type Decoding, ENCODINGS, type Encoding } from "./encodings.ts";
import { StatementRefusedError } from "./format.ts";

export { ENCODINGS, type Encoding } from "./encodings.ts";

interface EncodingCandidate {
  readonly encoding: Encoding;
  /** For people. */
  readonly reason: string;
  /** The text around the first character that is not ASCII, as this encoding reads it; "" where there is none. */
  readonly sample: string;
}

const MARKS: readonly { readonly encoding: Encoding; readonly bytes: readonly number[] }[] = [
  { encoding: "utf-8", bytes: [0xef, 0xbb, 0xbf] },
  { encoding: "utf-16le", bytes: [0xff, 0xfe] },
  { encoding: "utf-16be", bytes: [0xfe, 0xff] },
];
const LONGEST_MARK = 3;

/** What a single-byte decoder gives for bytes that the encoding does not define. */
const NO_TEXT = /[\u0080-\u009f\ufffd]/;

/** Throws `StatementRefusedError`. */
export async function* decode(bytes: AsyncIterable<Uint8Array>, encoding: Encoding): AsyncIterable<string> {
  const decoder: StrictDecoder =
    DECODERS[encoding].unit === "byte" ? new ByteDecoder(encoding) : new UnicodeDecoder(encoding);
  let head: Uint8Array | undefined = new Uint8Array();
  for await (const chunk of bytes) {
    let next = chunk;
    if (head !== undefined) {
      next = joined(head, chunk);
      head = next;
      if (next.length < LONGEST_MARK) continue;
      refuseOtherMark(next, encoding);
      head = undefined;
    }
    const text = decoder.decode(next);
    if (text !== "") yield text;
  }
  if (head !== undefined) {
    refuseOtherMark(head, encoding);
    const text = decoder.decode(head);
    if (text !== "") yield text;
  }
  decoder.end();
}

interface StrictDecoder {
  decode(bytes: Uint8Array): string;
  end(): void;
}

class ByteDecoder implements StrictDecoder {
  readonly #encoding: Encoding;
  readonly #decode: (bytes: Uint8Array) => string;
  #offset = 0;

  constructor(encoding: Encoding) {
    this.#encoding = encoding;
    this.#decode = byteDecoder(DECODERS[encoding]);
  }

  decode(bytes: Uint8Array): string {
    const { lacks }: Decoding = DECODERS[this.#encoding];
    const text = this.#decode(bytes);
    const bad = [
      bytes.indexOf(0),
      // One byte is one character, so that an index of the text is one of the bytes.
      text.search(NO_TEXT),
      lacks === undefined ? -1 : bytes.findIndex((byte) => byte >= lacks[0] && byte <= lacks[1]),
    ].filter((index) => index >= 0);
    const first = Math.min(...bad);
    if (bad.length > 0) throw badByte(bytes[first] ?? 0, this.#offset + first, this.#encoding);
    this.#offset += bytes.length;
    return text;
  }

  end(): void {}
}

function byteDecoder({ label, iconv }: Decoding): (bytes: Uint8Array) => string {
  if (iconv === true) {
    const decoder = iconvLite.getDecoder(label);
    return (bytes) => decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }
  const decoder = new TextDecoder(label, { fatal: true });
  return (bytes) => decoder.decode(bytes);
}

/** UTF-8 and UTF-16, where a character may begin in one chunk and end in the next. */
class UnicodeDecoder implements StrictDecoder {
  readonly #encoding: Encoding;
  readonly #label: string;
  readonly #unit: Decoding["unit"];
  readonly #decoder: InstanceType<typeof TextDecoder>;
  #offset = 0;
  /** The last bytes before the next chunk: a character that is not complete has at most three. */
  #tail = new Uint8Array();

  constructor(encoding: Encoding) {
    this.#encoding = encoding;
    this.#label = DECODERS[encoding].label;
    this.#unit = DECODERS[encoding].unit;
    this.#decoder = new TextDecoder(this.#label, { fatal: true });
  }

  decode(bytes: Uint8Array): string {
    const text = this.#decodeOrRefuse(bytes);
    if (text.includes("\0")) throw badByte(0, this.#offset + (this.#nulIndex(bytes) ?? 0), this.#encoding);
    this.#offset += bytes.length;
    this.#tail = joined(this.#tail, bytes.subarray(-3)).slice(-3);
    return text;
  }

  end(): void {
    try {
      this.#decoder.decode();
    } catch {
      const sentence = `The file ends in the middle of a character (offset ${this.#offset}), so a part of it is missing; upload the whole file.`;
      throw new StatementRefusedError("truncated", sentence);
    }
  }

  #decodeOrRefuse(bytes: Uint8Array): string {
    try {
      return this.#decoder.decode(bytes, { stream: true });
    } catch {
      const index = this.#firstBadIndex(bytes);
      const nul = this.#nulIndex(bytes.subarray(0, index));
      if (nul !== undefined) throw badByte(0, this.#offset + nul, this.#encoding);
      throw badByte(bytes[index] ?? 0, this.#offset + index, this.#encoding);
    }
  }

  /** Finds the bad byte by bisection: the shortest beginning that is refused ends with it. */
  #firstBadIndex(bytes: Uint8Array): number {
    const begun = this.#unit === "utf-8" ? begunUtf8(this.#tail) : begunUtf16(this.#tail, this.#offset, this.#label);
    let good = 0;
    let bad = bytes.length;
    while (bad - good > 1) {
      const middle = (good + bad) >> 1;
      if (decodes(this.#label, joined(begun, bytes.subarray(0, middle)))) good = middle;
      else bad = middle;
    }
    return bad - 1;
  }

  /** Of the first NUL; -1 where it begins in the byte before these. */
  #nulIndex(bytes: Uint8Array): number | undefined {
    const isHalf = this.#offset % 2 === 1;
    if (this.#unit === "utf-8") {
      const index = bytes.indexOf(0);
      return index < 0 ? undefined : index;
    }
    if (isHalf && this.#tail.at(-1) === 0 && bytes[0] === 0) return -1;
    for (let index = isHalf ? 1 : 0; index + 1 < bytes.length; index += 2) {
      if (bytes[index] === 0 && bytes[index + 1] === 0) return index;
    }
    return undefined;
  }
}

function decodes(label: string, bytes: Uint8Array): boolean {
  try {
    new TextDecoder(label, { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** The bytes of an incomplete character at the end of the tail. */
function begunUtf8(tail: Uint8Array): Uint8Array {
  const lead = tail.findLastIndex((byte) => (byte & 0xc0) !== 0x80);
  const first = tail[lead] ?? 0;
  const needed = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return lead >= 0 && tail.length - lead < needed ? tail.subarray(lead) : new Uint8Array();
}

function begunUtf16(tail: Uint8Array, offset: number, label: string): Uint8Array {
  const half = offset % 2;
  const high = tail[tail.length - half - (label === "utf-16le" ? 1 : 2)] ?? 0;
  const isHighSurrogate = (high & 0xfc) === 0xd8;
  return tail.subarray(tail.length - half - (isHighSurrogate ? 2 : 0));
}

function refuseOtherMark(head: Uint8Array, encoding: Encoding): void {
  const mark = markOf(head);
  if (mark === undefined || mark === encoding) return;
  const sentence = `The file begins with the byte order mark of ${mark}, but ${encoding} is declared; declare ${mark}.`;
  throw new StatementRefusedError("not_text", sentence);
}

function markOf(head: Uint8Array): Encoding | undefined {
  return MARKS.find(({ bytes }) => bytes.every((byte, index) => head[index] === byte))?.encoding;
}

function badByte(byte: number, offset: number, encoding: Encoding): StatementRefusedError {
  const hex = byte.toString(16).padStart(2, "0");
  const sentence =
    byte === 0
      ? `The file has a NUL byte at offset ${offset}, which no text in ${encoding} has; upload the file as the provider made it.`
      : `The byte 0x${hex} at offset ${offset} is no text in ${encoding}; declare the encoding that the file has.`;
  return new StatementRefusedError("not_text", sentence);
}

/** Candidates, the most likely first; none where the head is no text. */
export function detectEncoding(head: Uint8Array): readonly EncodingCandidate[] {
  const mark = markOf(head);
  if (mark !== undefined) return [candidate(mark, "The file begins with its byte order mark.", head)];
  const wide = wideEncoding(head);
  if (wide !== undefined)
    return [candidate(wide, "In most byte pairs the same byte is zero, and there is no byte order mark.", head)];
  if (head.includes(0)) return [];
  const declared = xmlEncoding(head);
  if (declared !== undefined && isText(declared, head)) return [candidate(declared, "The XML declares it.", head)];
  if (head.every((byte) => byte < 0x80)) {
    const reason = "All characters up to here are ASCII, which most encodings have in common.";
    return [candidate("utf-8", reason, head), candidate("windows-1252", reason, head)];
  }
  if (decodes("utf-8", head)) return [candidate("utf-8", "All bytes up to here are valid UTF-8.", head)];
  return SINGLE_BYTE.filter((encoding) => isTextIn(encoding, head)).map((encoding) =>
    candidate(encoding, "The bytes are not UTF-8, and all of them are characters in this encoding.", head),
  );
}

const SINGLE_BYTE: readonly Encoding[] = ["windows-1252", "iso-8859-15", "iso-8859-1", "macintosh", "cp850"];

function isText(encoding: Encoding, head: Uint8Array): boolean {
  return DECODERS[encoding].unit === "byte" ? isTextIn(encoding, head) : decodes(encoding, head);
}

function isTextIn(encoding: Encoding, head: Uint8Array): boolean {
  try {
    new ByteDecoder(encoding).decode(head);
    return true;
  } catch {
    return false;
  }
}

/** UTF-16 without a mark: Latin text has its zeros at the even offsets, or at the odd ones, and hardly any at the others. */
function wideEncoding(head: Uint8Array): Encoding | undefined {
  const zeros = [0, 0];
  head.forEach((byte, index) => {
    if (byte === 0) zeros[index % 2] = (zeros[index % 2] ?? 0) + 1;
  });
  const [even = 0, odd = 0] = zeros;
  const pairs = Math.floor(head.length / 2);
  if (pairs === 0 || Math.min(even, odd) > pairs / 50) return undefined;
  if (odd > pairs / 2) return "utf-16le";
  return even > pairs / 2 ? "utf-16be" : undefined;
}

const SAMPLE_CHARACTERS = 40;

function candidate(encoding: Encoding, reason: string, head: Uint8Array): EncodingCandidate {
  const { label, unit }: Decoding = DECODERS[encoding];
  const whole = unit === "byte" ? byteDecoder(DECODERS[encoding])(head) : new TextDecoder(label).decode(head);
  const at = whole.search(/\P{ASCII}/u);
  const from = Math.max(0, at - SAMPLE_CHARACTERS / 2);
  const sample = at < 0 ? "" : whole.slice(from, from + SAMPLE_CHARACTERS).replaceAll(/\s+/g, " ");
  return { encoding, reason, sample };
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}

const DECLARATION = /^<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][\w.-]*)["']/;
/** A declaration is far shorter. */
const DECLARATION_BYTES = 200;
/** Other names of encodings, as XML has them; ASCII is a part of UTF-8. */
const XML_NAMES: Readonly<Record<string, Encoding>> = {
  "us-ascii": "utf-8",
  utf8: "utf-8",
  latin1: "iso-8859-1",
  iso8859_1: "iso-8859-1",
  "cp-1252": "windows-1252",
  cp1252: "windows-1252",
};

/**
 * What an XML file declares in its first line. Undefined when the file is no XML in a form of ASCII, declares nothing, or
 * declares an encoding that is not read.
 */
function xmlEncoding(head: Uint8Array): Encoding | undefined {
  const start = Array.from(head.subarray(0, DECLARATION_BYTES), (byte) => String.fromCharCode(byte)).join("");
  const name = DECLARATION.exec(start)?.[1]?.toLowerCase();
  if (name === undefined) return undefined;
  return XML_NAMES[name] ?? ENCODINGS.find((encoding) => encoding === name);
}
