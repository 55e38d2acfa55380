/** Sends a file to an account in pieces, and waits for its import. */
import { createReadStream, statSync } from "node:fs";
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { request } from "undici";
import { z } from "zod";
import { CommandError, refusalError } from "../command.ts";
import { clientLimits } from "../limits.ts";
import { type Person, queryOf } from "../person.ts";
import { paced } from "./paced.ts";
import type { Progress } from "./progress.ts";

export const importSchema = z.looseObject({
  import_id: z.int(),
  account_id: z.int(),
  file_name: z.string(),
  status: z.string(),
  status_code: z.string().nullable(),
  status_detail: z.string().nullable(),
  size_bytes: z.int(),
  read_bytes: z.int(),
  lines_new: z.int(),
  lines_known: z.int(),
  malformed: z.int(),
});
export type Import = z.infer<typeof importSchema>;
export const uploadedSchema = importSchema.extend({
  candidates: z
    .looseObject({
      formats: z.array(z.looseObject({ name: z.string(), title: z.string() })),
      encodings: z.array(z.looseObject({ encoding: z.string(), sample: z.string() })),
      refusal: z.looseObject({ detail: z.string() }).nullable(),
    })
    .nullable(),
});
export type Uploaded = z.infer<typeof uploadedSchema>;

export interface Declared {
  readonly format: string | undefined;
  readonly encoding: string | undefined;
  readonly mappingId: number | undefined;
}

/** Throws `CommandError` for a file that cannot be read, and for a refusal. */
export async function upload(
  { baseUrl, credential, signal }: Person,
  file: { readonly path: string; readonly name: string; readonly accountId: number; readonly declared: Declared },
  progress: Progress,
): Promise<Uploaded> {
  const sizeBytes = sizeOf(file.path);
  const { format, encoding, mappingId } = file.declared;
  const query = queryOf({ file_name: file.name, format, encoding, mapping_id: mappingId });
  const url = new URL(`/api/reconciliation/v1/accounts/${file.accountId}/imports/${query}`, baseUrl);
  const { statusCode, body } = await request(url, {
    method: "POST",
    headers: { authorization: `Bearer ${credential}`, "content-length": String(sizeBytes) },
    body: Readable.from(counted(file.path, (sentBytes) => progress.update(sentBytes, sizeBytes))),
    signal,
    // A slow connection may need hours; the service ends an upload that stalls.
    bodyTimeout: 0,
    headersTimeout: 0,
  })
    .catch((error: unknown) => {
      throw new CommandError(`The upload to ${url.origin} broke off; send the file again.`, { cause: error });
    })
    .finally(() => progress.end());
  const answer: unknown = await body.json().catch(() => undefined);
  if (statusCode === 200 || statusCode === 201) return uploadedSchema.parse(answer);
  throw refusalError(answer, statusCode);
}

function sizeOf(path: string): number {
  try {
    const facts = statSync(path);
    if (facts.isFile()) return facts.size;
  } catch {
    throw new CommandError(`The file ${path} cannot be read; check its name.`);
  }
  throw new CommandError(`${path} is no file; name one.`);
}

async function* counted(path: string, onSent: (sentBytes: number) => void): AsyncIterable<Buffer> {
  let sentBytes = 0;
  for await (const piece of paced(createReadStream(path) as AsyncIterable<Buffer>)) {
    yield piece;
    sentBytes += piece.length;
    onSent(sentBytes);
  }
}

const ENDED: ReadonlySet<string> = new Set(["needs_format", "held", "imported", "refused", "withdrawing", "withdrawn"]);

/** Waits until the import has ended or needs a person, and returns it. */
export async function untilEnded({ read, signal }: Person, importId: number, progress: Progress): Promise<Uploaded> {
  try {
    for (;;) {
      const now = await read(`imports/${importId}/`, uploadedSchema);
      if (now.status === "importing" || ENDED.has(now.status)) progress.update(now.read_bytes, now.size_bytes);
      if (ENDED.has(now.status)) return now;
      await delay(clientLimits.progressPollMs, undefined, { signal });
    }
  } finally {
    // The next output starts on a new line, also the sentence of an error.
    progress.end();
  }
}
