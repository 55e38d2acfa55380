/**
 * The relay's notice that a bucket has everything that PostgreSQL knows (design §3). A server that was killed may come
 * back without its newest data, or without any data, and does not report that. So the notice has the id of the server
 * for which it was written: a server has a new id after each start. The notice is in the bucket, after the entries that
 * it is about. So a reader of the notice has read them.
 */
import { z } from "zod";
import type { Bus } from "./connection.ts";
import type { BucketDefinition } from "./streams.ts";

const PREFIX = "complete.";

/**
 * The bucket's keys for notices; the newest notice counts. The relay uses the two keys in turn. After a reconnect, a
 * reader checks whether the bucket still has the last message that it has read. That is often a notice, so the next
 * notice must not overwrite it.
 */
export const COMPLETE_KEYS = [`${PREFIX}0`, `${PREFIX}1`] as const;

const noticeSchema = z.object({ serverId: z.string() });
export type CompletenessNotice = z.infer<typeof noticeSchema>;

/** The newest notice that one reader of a bucket has read. */
export class BucketCompleteness {
  readonly #bus: Pick<Bus, "nc">;
  readonly #prefix: string;
  #notice: CompletenessNotice | undefined;

  constructor(bus: Pick<Bus, "nc">, bucket: BucketDefinition) {
    this.#bus = bus;
    this.#prefix = `$KV.${bucket.name}.${PREFIX}`;
  }

  /** Handles a notice or its deletion. Returns false for any other message. */
  take(message: { readonly subject: string; readonly data: Uint8Array }): boolean {
    if (!message.subject.startsWith(this.#prefix)) return false;
    this.#notice = readNotice(message.data);
    return true;
  }

  /** Called when the bucket was created again or has lost its end. */
  reset(): void {
    this.#notice = undefined;
  }

  /**
   * Whether the notice is for the server that this process is connected to. In a cluster it counts for all servers,
   * because they restore the data that one of them has lost.
   */
  isComplete(): boolean {
    const { info } = this.#bus.nc;
    return this.#notice !== undefined && (this.#notice.serverId === info?.server_id || info?.cluster !== undefined);
  }
}

/** Undefined for data that is not a notice. */
function readNotice(data: Uint8Array): CompletenessNotice | undefined {
  try {
    const text = Buffer.from(data.buffer, data.byteOffset, data.length).toString("utf8");
    return noticeSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
