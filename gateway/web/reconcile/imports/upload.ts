/** Sends a file and reports the progress. `fetch` cannot report it, so this uses `XMLHttpRequest`. */
import type { Failure } from "../../shared/failures.ts";
import type { ReplyOf } from "../../shared/operations.ts";

type Import = ReplyOf<"GET /api/reconciliation/v1/imports/{import_id}/">;
type Result = { readonly ok: true; readonly reply: Import } | Failure;

/** The service ends an upload that is slower than 4 KiB per second. This timeout is for an upload that never ends. */
const TIMEOUT_MS = 3_600_000;
/** The service takes four files of an organization at once: one place is left for another person. */
const FILES_AT_ONCE = 3;
let underWay = 0;
const waiting: (() => void)[] = [];

/** Carries the work out as soon as fewer than `FILES_AT_ONCE` others are under way, the first that waits first. */
export async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (underWay < FILES_AT_ONCE) underWay += 1;
  else await new Promise<void>((resolve) => waiting.push(resolve));
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next === undefined) underWay -= 1;
    else next();
  }
}

const failed = (code: Failure["code"], httpStatus = 0): Failure => ({
  ok: false,
  code,
  detail: "",
  httpStatus,
  retryAfterMs: null,
});

export function upload(
  accountId: number,
  file: File,
  onProgress: (sentBytes: number) => void,
): { readonly ended: Promise<Result>; readonly cancel: () => void } {
  const request = new XMLHttpRequest();
  const name = new URLSearchParams({ file_name: file.name.slice(0, 100) });
  request.open("POST", `/api/reconciliation/v1/accounts/${accountId}/imports/?${name}`);
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.timeout = TIMEOUT_MS;
  request.upload.addEventListener("progress", ({ loaded }) => onProgress(loaded));
  const ended = new Promise<Result>((resolve) => {
    request.addEventListener("load", () => resolve(resultOf(request)));
    request.addEventListener("error", () => resolve(failed("offline")));
    request.addEventListener("timeout", () => resolve(failed("no_answer")));
    request.addEventListener("abort", () => resolve(failed("no_answer")));
  });
  request.send(file);
  return { ended, cancel: () => request.abort() };
}

function resultOf({ status, responseText }: XMLHttpRequest): Result {
  try {
    const body: unknown = JSON.parse(responseText);
    if (status < 300) return { ok: true, reply: body as Import };
    return { ...failed("answer_unreadable", status), ...(body as object), ok: false };
  } catch {
    return failed("answer_unreadable", status);
  }
}
