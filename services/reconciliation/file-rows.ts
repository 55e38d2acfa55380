/** What an uploaded file says, whether it comes as it is or in an archive. */
import { archivedRows, isArchive, type Move } from "./formats/archive.ts";
import { refuseOtherFile } from "./formats/file-kinds.ts";
import { peeked } from "./peeked.ts";

/** The rows of a file, or of all files of an archive with `between` between them. Throws `StatementRefusedError`. */
export async function* fileRows<Row>(
  bytes: AsyncIterable<Uint8Array>,
  parse: (bytes: AsyncIterable<Uint8Array>) => AsyncIterable<Row>,
  move: Move<Row>,
  between?: Row,
): AsyncGenerator<Row> {
  const file = await peeked(bytes);
  if (isArchive(file.head)) {
    yield* archivedRows(file.bytes, parse, move, between);
    return;
  }
  refuseOtherFile(file.head);
  yield* parse(file.bytes);
}
