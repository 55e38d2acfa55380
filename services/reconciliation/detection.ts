/** Detects from its beginning which formats and encodings an uploaded file may have. A person confirms one. */
import type { z } from "zod";
import type { candidatesSchema } from "../bus/messages/statement-imports.ts";
import { peeked } from "./file-rows.ts";
import { archivedFiles, isArchive } from "./formats/archive.ts";
import { decode, detectEncoding, type Encoding } from "./formats/decode.ts";
import { StatementRefusedError } from "./formats/format.ts";
import { FORMAT_LIMITS } from "./formats/limits.ts";
import { refuseOtherFile } from "./formats/refused-files.ts";
import { detectFormats, refuseOtherReport } from "./formats/registry.ts";
import { emptyFile } from "./formats/statement-text.ts";

export type Candidates = z.infer<typeof candidatesSchema>;

/** For an archive, its first file decides. */
export async function detectCandidates(bytes: AsyncIterable<Uint8Array>): Promise<Candidates> {
  try {
    const head = await headOf(bytes);
    const encodings = [...detectEncoding(head)];
    if (encodings.length === 0) return refusedAs("not_text", "The file is no text in an encoding that is known.");
    for (const read of encodings) {
      const text = await textOf(head, read.encoding);
      if (text.trim() === "" && isWhole(head)) throw emptyFile();
      refuseOtherReport(text);
      const formats = detectFormats(text);
      if (formats.length === 0) continue;
      const others = encodings.filter((encoding) => encoding !== read);
      const named = formats.map(({ name, title }) => ({ name, title }));
      // With this encoding the header is a known one, so it comes first.
      return { formats: named, encodings: [read, ...others], refusal: null };
    }
    return { formats: [], encodings, refusal: null };
  } catch (error) {
    if (!(error instanceof StatementRefusedError)) throw error;
    return refusedAs(error.code, error.message);
  }
}

const refusedAs = (code: string, detail: string): Candidates => ({
  formats: [],
  encodings: [],
  refusal: { code, detail },
});

async function headOf(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const file = await peeked(bytes);
  if (!isArchive(file.head)) {
    refuseOtherFile(file.head);
    return await beginningOf(file.bytes);
  }
  for await (const archived of archivedFiles(file.bytes)) return await beginningOf(archived.bytes);
  return new Uint8Array();
}

async function beginningOf(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of bytes) {
    parts.push(part);
    size += part.length;
    if (size >= FORMAT_LIMITS.headCharacters) break;
  }
  return Buffer.concat(parts, size).subarray(0, FORMAT_LIMITS.headCharacters);
}

/** Whether nothing of the file comes after its head. */
const isWhole = (head: Uint8Array): boolean => head.length < FORMAT_LIMITS.headCharacters;

/** The text before the first byte that cannot be decoded: the head may end in the middle of a character. */
async function textOf(head: Uint8Array, encoding: Encoding): Promise<string> {
  let text = "";
  try {
    for await (const part of decode(pieceOf(head), encoding)) text += part;
  } catch (error) {
    if (!(error instanceof StatementRefusedError)) throw error;
  }
  return text;
}

async function* pieceOf(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
