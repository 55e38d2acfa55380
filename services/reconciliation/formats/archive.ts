/**
 * A zip of statements: banks deliver camt in this form, one or many XML files in one archive. The compressed archive is held in
 * memory, because only its central directory, at the end, lists its files; the files are streamed one by one.
 *
 * Everything that an archive states about itself is checked before its first file is read, and what it unpacks to is checked
 * against that: a false size, a damaged file or files that overlap refuse the whole archive.
 */
import { crc32 } from "node:zlib";
import { type Entry, fromBufferPromise, type ZipFile } from "yauzl";
import { printableStart } from "../../runtime/printable.ts";
import { StatementRefusedError } from "./format.ts";
import { FORMAT_LIMITS } from "./limits.ts";
import { OFFICE_FILE, OFFICE_REFUSAL } from "./refused-files.ts";

/** One file of an archive. Its bytes are read before the next file is asked for. */
interface ArchivedFile {
  readonly name: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Whether the first bytes of a file are those of a zip; an empty zip begins with its directory. */
export function isArchive(head: Uint8Array): boolean {
  return startsWith(head, LOCAL_HEADER) || startsWith(head, EMPTY_DIRECTORY);
}
const LOCAL_HEADER = [0x50, 0x4b, 0x03, 0x04];
const EMPTY_DIRECTORY = [0x50, 0x4b, 0x05, 0x06];
/** Archives and compressed files that a statement is never in: zip, gzip, 7z, rar, bzip2, xz. */
const NESTED = [
  LOCAL_HEADER,
  EMPTY_DIRECTORY,
  [0x1f, 0x8b],
  [0x37, 0x7a, 0xbc, 0xaf],
  [0x52, 0x61, 0x72, 0x21],
  [0x42, 0x5a, 0x68],
  [0xfd, 0x37, 0x7a, 0x58],
];
const ARCHIVE_NAMES = /\.(?:zip|gz|tgz|7z|rar|bz2|xz|jar)$/i;

/** The files of an archive in the order of its directory. Throws only `StatementRefusedError`. */
export async function* archivedFiles(archive: AsyncIterable<Uint8Array>): AsyncGenerator<ArchivedFile> {
  const bytes = await collected(archive);
  const zip = await orRefuse(fromBufferPromise(bytes, { validateEntrySizes: true }));
  try {
    const files = await checkedFiles(zip, bytes.length);
    for (const file of files) yield { name: file.fileName, bytes: contentOf(zip, file) };
  } finally {
    zip.close();
  }
}

/** Returns a row with its position moved by `by`, and the new position; 0 for a row without a position. */
export type Move<Row> = (row: Row, by: number) => { readonly row: Row; readonly position: number };

/**
 * The rows of all files of an archive. Positions continue from file to file, so that each occurs once. A refusal names the
 * file. `between` comes before each file but the first.
 */
export async function* archivedRows<Row>(
  archive: AsyncIterable<Uint8Array>,
  parse: (bytes: AsyncIterable<Uint8Array>) => AsyncIterable<Row>,
  move: Move<Row>,
  between?: Row,
): AsyncGenerator<Row> {
  let before = 0;
  let isFirst = true;
  for await (const file of archivedFiles(archive)) {
    if (!isFirst && between !== undefined) yield between;
    isFirst = false;
    let last = before;
    try {
      for await (const one of parse(file.bytes)) {
        const { row, position } = move(one, before);
        last = Math.max(last, position);
        yield row;
      }
    } catch (error) {
      throw naming(file, error);
    }
    before = last;
  }
}

function naming(file: ArchivedFile, error: unknown): unknown {
  if (!(error instanceof StatementRefusedError)) return error;
  return new StatementRefusedError(error.code, `${shown(file.name)} in the archive: ${error.message}`);
}

async function collected(archive: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of archive) {
    size += part.length;
    if (size > FORMAT_LIMITS.archiveBytes)
      throw refused(`is larger than ${FORMAT_LIMITS.archiveBytes} bytes: upload its files one by one.`);
    parts.push(part);
  }
  return Buffer.concat(parts, size);
}

/** The entries that are files. Refuses the archive when its directory is not harmless. */
async function checkedFiles(zip: ZipFile, archiveBytes: number): Promise<Entry[]> {
  if (zip.entryCount > FORMAT_LIMITS.archiveEntries)
    throw refused(`has more than ${FORMAT_LIMITS.archiveEntries} files.`);
  const files: Entry[] = [];
  for (const entry of await directoryOf(zip)) {
    if (isFolder(entry) || isLeftByMac(entry)) continue;
    checkEntry(entry);
    files.push(entry);
  }
  if (files.length === 0) throw refused("has no files.");
  checkTogether(files, archiveBytes);
  return files;
}

async function directoryOf(zip: ZipFile): Promise<Entry[]> {
  const entries: Entry[] = [];
  try {
    for await (const entry of zip.eachEntry()) {
      entries.push(entry);
    }
  } catch (error) {
    throw damaged(error);
  }
  return entries;
}

function checkEntry(entry: Entry): void {
  const name = shown(entry.fileName);
  if (entry.fileName === OFFICE_FILE) throw refused(OFFICE_REFUSAL);
  if (entry.isEncrypted()) throw refused(`has the encrypted file ${name}: unpack it with its password first.`);
  if (!entry.canDecodeFileData()) throw refused(`has ${name} in a compression that is not deflate: zip it again.`);
  if (ARCHIVE_NAMES.test(entry.fileName)) throw refused(`has the archive ${name} in it: unpack that one first.`);
}

function checkTogether(files: readonly Entry[], archiveBytes: number): void {
  if (new Set(files.map(({ fileName }) => fileName)).size < files.length) throw refused("has two files of one name.");
  const output = files.reduce((sum, { uncompressedSize }) => sum + uncompressedSize, 0);
  if (output > FORMAT_LIMITS.archiveOutputBytes)
    throw refused(`unpacks to more than ${FORMAT_LIMITS.archiveOutputBytes} bytes: upload its files one by one.`);
  if (output > FORMAT_LIMITS.archiveRatioFromBytes && output > archiveBytes * FORMAT_LIMITS.archiveRatio)
    throw refused(`unpacks to more than ${FORMAT_LIMITS.archiveRatio} times its size, as no statement does.`);
  const ordered = files.toSorted((a, b) => a.relativeOffsetOfLocalHeader - b.relativeOffsetOfLocalHeader);
  ordered.reduce((end, entry) => {
    if (entry.relativeOffsetOfLocalHeader < end) throw refused("has files that overlap one another.");
    return entry.relativeOffsetOfLocalHeader + LOCAL_HEADER_BYTES + entry.compressedSize;
  }, 0);
}
const LOCAL_HEADER_BYTES = 30;

/** yauzl refuses a stream that is longer or shorter than the directory states; this function compares the checksum. */
async function* contentOf(zip: ZipFile, entry: Entry): AsyncGenerator<Uint8Array> {
  let checksum = 0;
  let isFirst = true;
  const stream = await orRefuse(zip.openReadStreamPromise(entry));
  try {
    for await (const part of stream as AsyncIterable<Buffer>) {
      if (isFirst && NESTED.some((start) => startsWith(part, start)))
        throw refused(`has the archive ${shown(entry.fileName)} in it: unpack that one first.`);
      isFirst = false;
      checksum = crc32(part, checksum);
      yield part;
    }
  } catch (error) {
    throw error instanceof StatementRefusedError ? error : damaged(error);
  }
  if (checksum !== entry.crc32) throw refused(`is damaged: the checksum of ${shown(entry.fileName)} differs.`);
}

async function orRefuse<T>(promise: Promise<T>): Promise<T> {
  return promise.catch((error: unknown) => {
    throw damaged(error);
  });
}

/** The library's own sentence names what is wrong, and may quote the file. */
function damaged(error: unknown): StatementRefusedError {
  const reason = error instanceof Error ? printableStart(error.message, 200).replace(/\.+$/, "") : "it cannot be read";
  return refused(`is damaged or is no plain zip: ${reason}.`);
}

function refused(predicate: string): StatementRefusedError {
  return new StatementRefusedError("archive_refused", `The archive ${predicate}`);
}

function isFolder(entry: Entry): boolean {
  return entry.fileName.endsWith("/") && entry.uncompressedSize === 0;
}

/** macOS adds a shadow file beside each file and one for each folder. */
function isLeftByMac({ fileName }: Entry): boolean {
  return fileName.startsWith("__MACOSX/") || fileName === ".DS_Store" || fileName.endsWith("/.DS_Store");
}

function startsWith(bytes: Uint8Array, start: readonly number[]): boolean {
  return bytes.length >= start.length && start.every((byte, index) => bytes[index] === byte);
}

function shown(name: string): string {
  return `“${printableStart(name, 100)}”`;
}
