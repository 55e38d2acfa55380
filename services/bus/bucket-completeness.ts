/**
 * The relay's notice that a bucket has everything that PostgreSQL knows (design §3). A server that was killed may come back
 * without its newest data, or without any, and reports it nowhere. So the notice names the run of the server for which it
 * was written, by the id that a server gives itself at each start. It is in the bucket itself, behind the entries that it
 * is about: a reader that has read it has read them.
 */
import { z } from "zod";
import type { Bus } from "./connection.ts";
import type { BucketDefinition } from "./streams.ts";

const PREFIX = "complete.";

/**
 * The bucket's keys for notices, of which the newest counts. There are two by turns: a reader that comes back finds out by
 * the last message that it has read whether the bucket has lost something, and that message is often the notice, which must
 * not be overwritten meanwhile.
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

  /** Takes in a notice, or its deletion; false when the message is an entry like any other. */
  take(message: { readonly subject: string; readonly data: Uint8Array }): boolean {
    if (!message.subject.startsWith(this.#prefix)) return false;
    this.#notice = readNotice(message.data);
    return true;
  }

  /** The bucket was created again, or has lost its end. */
  reset(): void {
    this.#notice = undefined;
  }

  /**
   * Whether the notice is for the server that this process is connected to. The servers of a cluster restore what one of
   * them has lost, so there it is for all of them.
   */
  isComplete(): boolean {
    const { info } = this.#bus.nc;
    return this.#notice !== undefined && (this.#notice.serverId === info?.server_id || info?.cluster !== undefined);
  }
}

/** Undefined for what cannot be read. */
function readNotice(data: Uint8Array): CompletenessNotice | undefined {
  try {
    const text = Buffer.from(data.buffer, data.byteOffset, data.length).toString("utf8");
    return noticeSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
