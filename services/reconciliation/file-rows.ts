/** Reads the rows of an uploaded file, which may be an archive of files. */
import { archivedRows, isArchive, type Move } from "./formats/archive.ts";
import { refuseOtherFile } from "./formats/refused-files.ts";

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

/** The first bytes of a stream before the rest of it is read. */
interface Peeked {
  readonly head: Uint8Array;
  /** All bytes, the head included; read once. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** The head is the first chunk of the source, however long it is. */
export async function peeked(source: AsyncIterable<Uint8Array>): Promise<Peeked> {
  const iterator = source[Symbol.asyncIterator]();
  const first = await iterator.next();
  const head = first.done === true ? new Uint8Array() : first.value;
  return { head, bytes: wholeOf(head, iterator) };
}

async function* wholeOf(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncIterable<Uint8Array> {
  try {
    if (head.length > 0) yield head;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}
