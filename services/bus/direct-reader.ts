/**
 * Reads a stream in order by direct get, without a consumer. Any server with a copy answers, so the loss of one server
 * changes nothing. A copy that lags answers with fewer messages, and the next read continues there.
 */
import { createInbox, type Msg, type MsgHdrs, type NatsConnection, type Subscription } from "nats";
import type { Bus } from "./connection.ts";
import { NO_MESSAGE } from "./jetstream-codes.ts";

export interface ReadMessage {
  readonly subject: string;
  readonly sequence: number;
  /** When the server stored it, by the server's clock. */
  readonly storedAtMs: number;
  readonly headers: MsgHdrs | undefined;
  readonly data: Uint8Array;
  /** How many later messages of the requested subjects the copy has. */
  readonly pending: number;
  string(): string;
}

/** No copy answered in time, or only a part of the answer came. */
export class NoCopyAnswersError extends Error {
  readonly code = "no_copy_answers";
  constructor(stream: string, options: ErrorOptions = {}) {
    super(`No copy of the stream ${stream} answers.`, options);
    this.name = "NoCopyAnswersError";
  }
}

interface DirectRead {
  readonly stream: string;
  readonly timeoutMs: number;
}

/**
 * Up to `most` messages from the sequence `from` on, of these subjects or of all; fewer when they are large, and none
 * when the copy ends before. With `askAgainMs` it repeats the request at this interval until an answer begins, and
 * returns the first complete answer: the server picks a copy by chance, and the copy of a stalled server never answers.
 * Throws NoCopyAnswersError.
 */
export async function readBatch(
  nc: NatsConnection,
  read: DirectRead & BatchQuery & { readonly askAgainMs?: number },
): Promise<readonly ReadMessage[]> {
  const { stream, timeoutMs, askAgainMs } = read;
  const ended = Promise.withResolvers<readonly ReadMessage[]>();
  const answers: BatchAnswer[] = [];
  const ask = (): void => {
    if (answers.some(({ isBegun }) => isBegun)) return;
    try {
      answers.push(new BatchAnswer(nc, read, ended));
    } catch (cause) {
      // The connection was closed.
      ended.reject(new NoCopyAnswersError(stream, { cause }));
    }
  };
  ask();
  const timeout = setTimeout(() => ended.reject(new NoCopyAnswersError(stream)), timeoutMs);
  const again = askAgainMs === undefined ? undefined : setInterval(ask, askAgainMs);
  try {
    return await ended.promise;
  } finally {
    clearTimeout(timeout);
    clearInterval(again);
    for (const answer of answers) answer.stop();
  }
}

interface BatchQuery {
  readonly from: number;
  readonly most: number;
  readonly subjects?: string;
}

/** One request for a batch, and the answer of one copy. */
class BatchAnswer {
  isBegun = false;
  readonly #messages: ReadMessage[] = [];
  readonly #subscription: Subscription;

  constructor(
    nc: NatsConnection,
    { stream, subjects, from, most }: DirectRead & BatchQuery,
    ended: PromiseWithResolvers<readonly ReadMessage[]>,
  ) {
    const inbox = createInbox();
    const fail = (cause?: unknown): void => ended.reject(new NoCopyAnswersError(stream, { cause }));
    this.#subscription = nc.subscribe(inbox, {
      callback: (error, message) => {
        if (error !== null) return fail(error);
        this.isBegun = true;
        const code = message.headers?.code ?? 0;
        const before = Number(message.headers?.get("Nats-Last-Sequence") ?? 0);
        if (code === 404) return ended.resolve([]);
        if (code !== 0 && code !== 204) return fail();
        // Each message, and the end of the batch, has the sequence of the message before it. So a missing message is
        // noticed.
        if (before !== (this.#messages.at(-1)?.sequence ?? 0)) return fail();
        if (code === 204) ended.resolve(this.#messages);
        else this.#messages.push(asRead(message));
      },
    });
    const query = JSON.stringify({ seq: from, batch: most, next_by_subj: subjects });
    nc.publish(`$JS.API.DIRECT.GET.${stream}`, query, { reply: inbox });
  }

  stop(): void {
    this.#subscription.unsubscribe();
  }
}

/** The first message of these subjects at this sequence or behind it; null where the copy has none. Throws NoCopyAnswersError. */
export async function readNext(
  { nc }: Pick<Bus, "nc">,
  read: DirectRead & { readonly from: number; readonly subjects: string },
): Promise<ReadMessage | null> {
  const { stream, from, subjects, timeoutMs } = read;
  const query = JSON.stringify({ seq: from, next_by_subj: subjects });
  const message = await nc
    .request(`$JS.API.DIRECT.GET.${stream}`, query, { timeout: timeoutMs })
    .catch((cause: unknown) => {
      throw new NoCopyAnswersError(stream, { cause });
    });
  const code = message.headers?.code ?? 0;
  if (code === 404) return null;
  if (code !== 0) throw new NoCopyAnswersError(stream);
  return asRead(message);
}

interface LeaderAnswer {
  readonly message?: { readonly seq: number; readonly data?: string };
  readonly error?: { readonly err_code?: number; readonly description?: string };
}

/** The same from the leader of the stream, which does not lag. Throws NoCopyAnswersError. */
export async function readNextOfLeader(
  { nc }: Pick<Bus, "nc">,
  read: DirectRead & { readonly from: number; readonly subjects: string },
): Promise<Pick<ReadMessage, "sequence" | "data"> | null> {
  const { stream, from, subjects, timeoutMs } = read;
  const query = JSON.stringify({ seq: from, next_by_subj: subjects });
  const answer = await nc
    .request(`$JS.API.STREAM.MSG.GET.${stream}`, query, { timeout: timeoutMs })
    .catch((cause: unknown) => {
      throw new NoCopyAnswersError(stream, { cause });
    });
  const { message, error } = answer.json<LeaderAnswer>();
  if (error?.err_code === NO_MESSAGE) return null;
  if (message === undefined) throw new NoCopyAnswersError(stream, { cause: error?.description });
  return { sequence: message.seq, data: Buffer.from(message.data ?? "", "base64") };
}

function asRead(message: Msg): ReadMessage {
  const header = (name: string): string => message.headers?.get(name) ?? "";
  return {
    subject: header("Nats-Subject"),
    sequence: Number(header("Nats-Sequence")),
    storedAtMs: Date.parse(header("Nats-Time-Stamp")),
    headers: message.headers,
    data: message.data,
    pending: Number(header("Nats-Num-Pending")),
    string: () => message.string(),
  };
}
