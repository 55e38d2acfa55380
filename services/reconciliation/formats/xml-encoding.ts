/** The encoding that an XML file declares in its first line. */
import { ENCODINGS, type Encoding } from "./encodings.ts";

const DECLARATION = /^<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][\w.-]*)["']/;
/** A declaration is far shorter. */
const DECLARATION_BYTES = 200;
/** Other names of the same, as XML has them; ASCII is a part of UTF-8. */
const NAMES: Readonly<Record<string, Encoding>> = {
  "us-ascii": "utf-8",
  utf8: "utf-8",
  latin1: "iso-8859-1",
  iso8859_1: "iso-8859-1",
  "cp-1252": "windows-1252",
  cp1252: "windows-1252",
};

/** Undefined when the file is no XML in a form of ASCII, declares nothing, or declares an encoding that is not read. */
export function xmlEncoding(head: Uint8Array): Encoding | undefined {
  const start = Array.from(head.subarray(0, DECLARATION_BYTES), (byte) => String.fromCharCode(byte)).join("");
  const name = DECLARATION.exec(start)?.[1]?.toLowerCase();
  if (name === undefined) return undefined;
  return NAMES[name] ?? ENCODINGS.find((encoding) => encoding === name);
}
