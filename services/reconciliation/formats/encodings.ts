/** The decoder of each encoding that a statement file may have. */
import type { Encoding } from "../../bus/messages/statement-formats.ts";

export { ENCODINGS, type Encoding } from "../../bus/messages/statement-formats.ts";

/** What each encoding is decoded with. `iconv` has the code pages of DOS, which `TextDecoder` lacks. */
export const DECODERS = {
  "utf-8": { label: "utf-8", unit: "utf-8" },
  "utf-16le": { label: "utf-16le", unit: "utf-16" },
  "utf-16be": { label: "utf-16be", unit: "utf-16" },
  "windows-1252": { label: "windows-1252", unit: "byte" },
  // The label iso-8859-1 means windows-1252 to a TextDecoder. They differ in 0x80 to 0x9f only, where ISO 8859 has no text.
  "iso-8859-1": { label: "windows-1252", unit: "byte", lacks: [0x80, 0x9f] },
  "iso-8859-15": { label: "iso-8859-15", unit: "byte" },
  "windows-1250": { label: "windows-1250", unit: "byte" },
  "iso-8859-2": { label: "iso-8859-2", unit: "byte" },
  macintosh: { label: "macintosh", unit: "byte" },
  cp850: { label: "cp850", unit: "byte", iconv: true },
  cp437: { label: "cp437", unit: "byte", iconv: true },
} as const satisfies Record<Encoding, Decoding>;

export interface Decoding {
  readonly label: string;
  readonly unit: "utf-8" | "utf-16" | "byte";
  readonly lacks?: readonly [from: number, to: number];
  readonly iconv?: true;
}
