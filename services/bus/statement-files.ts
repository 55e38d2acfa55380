/**
 * Uploaded statement files in the object store of the bus. Files are written and read in chunks, one after another. So
 * a process holds at most a megabyte of a file in memory, even when the other side is slow. The client library's object
 * store does not wait for a slow reader, and would hold most of a file in memory.
 *
 *   $O.STATEMENTS.C.<name>            the chunks, in order
 *   $O.STATEMENTS.M.<base64 of name>  written last: the file is complete, its size and its hash
 */
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { JetStreamApiError } from "@nats-io/jetstream";
import { errors, nuid } from "nats";
import { z } from "zod";
import { errorCode } from "../runtime/user-error.ts";
import type { Bus } from "./connection.ts";
import { type ReadMessage, readBatch, readNextOfLeader } from "./direct-reader.ts";
import { BUS_LIMITS } from "./limits.ts";
import { RefusedError } from "./refusals.ts";
import { STATEMENT_FILES } from "./streams.ts";

const STREAM = `OBJ_${STATEMENT_FILES.name}`;
const chunksOf = (name: string): string => `$O.${STATEMENT_FILES.name}.C.${name}`;
const completionOf = (name: string): string =>
  `$O.${STATEMENT_FILES.name}.M.${Buffer.from(name).toString("base64url")}`;

/** JetStream's error codes for a message beyond the bounds of the stream or the account. */
const FULL_CODES: ReadonlySet<number> = new Set([10_077, 10_047, 10_023]);

/** The leader has not stored the message yet that an earlier attempt has sent. */
const DUPLICATE_IN_PROCESS = 10_158;

const completionSchema = z.object({ size: z.int().min(0), digest: z.string() });

export interface StoredFile {
  /** Its name in the object store. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Hex. */
  readonly sha256: string;
}

/** The object store has no such file, or only a part of it. */
export class FileLostError extends Error {
  readonly code = "file_lost";
}

/** Stores all bytes or none. Rejects with the error of `bytes`, or with `storage_low` when the store is full. */
export async function storeFile(bus: Pick<Bus, "js" | "jsm">, bytes: AsyncIterable<Uint8Array>): Promise<StoredFile> {
  const name = nuid.next();
  try {
    return await write(bus, name, bytes);
  } catch (error) {
    // If this fails, the bucket deletes the file by its age.
    await deleteFile(bus, name).catch(() => undefined);
    if (error instanceof JetStreamApiError && FULL_CODES.has(error.code)) {
      throw new RefusedError({ code: "storage_low", retryAfterMs: BUS_LIMITS.storageRetryMs });
    }
    throw error;
  }
}

async function write({ js }: Pick<Bus, "js">, name: string, bytes: AsyncIterable<Uint8Array>): Promise<StoredFile> {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  let chunks = 0;
  for await (const chunk of chunked(bytes)) {
    hash.update(chunk);
    sizeBytes += chunk.length;
    chunks += 1;
    await storeOnce(js, { subject: chunksOf(name), data: chunk, msgID: `${name}-${chunks}` });
  }
  const digest = hash.digest();
  const facts = {
    name,
    bucket: STATEMENT_FILES.name,
    nuid: name,
    size: sizeBytes,
    chunks,
    mtime: new Date().toISOString(),
  };
  const completion = { ...facts, digest: `SHA-256=${digest.toString("base64url")}=`, deleted: false };
  await storeOnce(js, { subject: completionOf(name), data: JSON.stringify(completion), msgID: name });
  return { name, sizeBytes, sha256: digest.toString("hex") };
}

interface Message {
  readonly subject: string;
  readonly data: Uint8Array | string;
  /** By this id the server recognizes a message that it has stored, and does not store it twice. */
  readonly msgID: string;
}

/** Sends the message again until the bus has acknowledged it, or until `fileChunkMs` has passed. */
async function storeOnce(js: Bus["js"], { subject, data, msgID }: Message): Promise<void> {
  const deadlineMs = performance.now() + BUS_LIMITS.fileChunkMs;
  for (;;) {
    try {
      await js.publish(subject, data, { timeout: BUS_LIMITS.fileChunkAgainMs, msgID });
      return;
    } catch (error) {
      if (!isPassing(error) || performance.now() >= deadlineMs) throw error;
    }
    await delay(BUS_LIMITS.fileChunkPauseMs);
  }
}

/** Whether the same message may be stored a moment later. */
function isPassing(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return error.code === DUPLICATE_IN_PROCESS;
  return error instanceof errors.TimeoutError || ["no_stream_leader", "bus_down"].includes(errorCode(error));
}

/** The same bytes in chunks of equal size; only the last chunk may be shorter. */
async function* chunked(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  let pieces: Uint8Array[] = [];
  let held = 0;
  for await (const piece of bytes) {
    pieces.push(piece);
    held += piece.length;
    if (held < BUS_LIMITS.fileChunkBytes) continue;
    const whole = Buffer.concat(pieces, held);
    let from = 0;
    for (; held - from >= BUS_LIMITS.fileChunkBytes; from += BUS_LIMITS.fileChunkBytes) {
      yield whole.subarray(from, from + BUS_LIMITS.fileChunkBytes);
    }
    pieces = [whole.subarray(from)];
    held -= from;
  }
  if (held > 0) yield Buffer.concat(pieces, held);
}

/**
 * The bytes of a file, from its beginning; it reads as fast as its consumer. Throws `FileLostError` or
 * `NoCopyAnswersError`.
 */
export async function* readFile(bus: Pick<Bus, "nc">, name: string): AsyncIterable<Uint8Array> {
  const [written] = await readOn(bus, { from: 1, subjects: completionOf(name) });
  if (written === undefined) throw new FileLostError(`The file ${name} is not in the object store.`);
  const { size } = completionSchema.parse(JSON.parse(Buffer.from(written.data).toString()));
  let readBytes = 0;
  let from = 1;
  while (readBytes < size) {
    const messages = await readOn(bus, { from, subjects: chunksOf(name) });
    if (messages.length === 0) break;
    for (const { data, sequence } of messages) {
      readBytes += data.length;
      from = sequence + 1;
      yield data;
    }
  }
  if (readBytes !== size)
    throw new FileLostError(`The file ${name} has ${size} bytes, of which ${readBytes} are left.`);
}

/**
 * The next chunks, from any copy. A copy may lag, so when it has none, the leader is asked. A newly elected leader may
 * lag, too, so there are several attempts. Returns none when the stream has lost the chunks.
 */
async function readOn(
  bus: Pick<Bus, "nc">,
  query: { readonly from: number; readonly subjects: string },
): Promise<readonly Pick<ReadMessage, "sequence" | "data">[]> {
  const { fileReadMs: timeoutMs, fileReadAgainMs: askAgainMs, fileReadChunks: most } = BUS_LIMITS;
  const { fileReadAttempts, fileReadPauseMs } = BUS_LIMITS;
  const read = { stream: STREAM, timeoutMs, ...query };
  for (let attempt = 1; attempt <= fileReadAttempts; attempt += 1) {
    const messages = await readBatch(bus.nc, { ...read, most, askAgainMs });
    if (messages.length > 0) return messages;
    const next = await readNextOfLeader(bus, read);
    if (next !== null) return [next];
    if (attempt < fileReadAttempts) await delay(fileReadPauseMs);
  }
  return [];
}

/** A repetition deletes nothing. */
export async function deleteFile({ jsm }: Pick<Bus, "jsm">, name: string): Promise<void> {
  await jsm.streams.purge(STREAM, { filter: completionOf(name) });
  await jsm.streams.purge(STREAM, { filter: chunksOf(name) });
}

/** The names of files whose newest chunk is older than `olderThanMs`, by the clock of the bus. */
export async function listOldFiles({ jsm, clock }: Pick<Bus, "jsm" | "clock">, olderThanMs: number): Promise<string[]> {
  const chunks = chunksOf("");
  const { state } = await jsm.streams.info(STREAM, { subjects_filter: `${chunks}>` });
  const old: string[] = [];
  for (const subject of Object.keys(state.subjects ?? {})) {
    const newest = await jsm.streams.getMessage(STREAM, { last_by_subj: subject });
    if (newest !== null && newest.time.getTime() < clock.nowMs() - olderThanMs) old.push(subject.slice(chunks.length));
  }
  return old;
}
