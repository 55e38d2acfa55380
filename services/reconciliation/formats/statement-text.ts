/** The text of a statement file. A file without text is refused: a statement without movements has at least a header. */
import { decode, type Encoding } from "./decode.ts";
import { StatementRefusedError } from "./format.ts";
import { FORMAT_LIMITS } from "./limits.ts";

/** White space before the text waits for it, up to the characters that a format is detected from. Throws `StatementRefusedError`. */
export async function* statementText(bytes: AsyncIterable<Uint8Array>, encoding: Encoding): AsyncGenerator<string> {
  let blank: string | undefined = "";
  for await (const part of decode(bytes, encoding)) {
    if (blank === undefined) {
      yield part;
      continue;
    }
    blank += part;
    if (blank.length <= FORMAT_LIMITS.headCharacters && blank.trim() === "") continue;
    yield blank;
    blank = undefined;
  }
  if (blank !== undefined) throw emptyFile();
}

export function emptyFile(): StatementRefusedError {
  return new StatementRefusedError("empty_file", "The file is empty: download it from the provider again.");
}
