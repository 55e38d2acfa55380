/**
 * Files that are no text, by their first bytes: people upload what the provider has sent. The refusal names what the file is,
 * because after "no text in UTF-8" a person would search for the right encoding.
 */
import { StatementRefusedError } from "./format.ts";

const UNPACK = "unpack it, and upload the file that is in it";
const STORE = "store it as CSV, and upload that";
const KINDS: readonly { readonly start: string; readonly is: string; readonly next: string }[] = [
  { start: "1f8b", is: "compressed with gzip", next: UNPACK },
  { start: "425a68", is: "compressed with bzip2", next: UNPACK },
  { start: "fd377a585a", is: "compressed with xz", next: UNPACK },
  { start: "28b52ffd", is: "compressed with zstd", next: UNPACK },
  { start: "377abcaf271c", is: "a 7z archive", next: UNPACK },
  { start: "526172211a07", is: "a RAR archive", next: UNPACK },
  { start: "d0cf11e0a1b11ae1", is: "a document of an office program", next: STORE },
  { start: "255044462d", is: "a PDF", next: "download the statement as CSV, XML or MT940" },
];
const LONGEST = Math.max(...KINDS.map(({ start }) => start.length / 2));

/** Throws `StatementRefusedError`. A zip is none of them (`isArchive`). */
export function refuseOtherFile(head: Uint8Array): void {
  const beginning = Buffer.from(head.subarray(0, LONGEST)).toString("hex");
  const kind = KINDS.find(({ start }) => beginning.startsWith(start));
  if (kind !== undefined) throw new StatementRefusedError("not_text", `The file is ${kind.is}: ${kind.next}.`);
}

/** What each file of Word and Excel has, which are zips. */
export const OFFICE_FILE = "[Content_Types].xml";
export const OFFICE_REFUSAL = `is a document of an office program: ${STORE}.`;
