/**
 * The relay's word that a bucket holds everything that PostgreSQL knows (design §3). A server that was killed may come back
 * without its newest data, or without any, and says so nowhere; so the word names the run of the server for which it was
 * given, by the id that a server gives itself at each start. It stands in the bucket itself, behind the entries of which it
 * speaks: whoever has read it has read them.
 */
import { z } from "zod";
import type { Bus } from "./connection.ts";
import type { BucketDefinition } from "./streams.ts";

const TOLD_PREFIX = "told.";

/**
 * The bucket's keys for it, of which the newest stands. Two by turns: a reader that comes back tells by the last message it
 * has read whether the bucket has lost something, and that message is often the word; it must not be written over meanwhile.
 */
export const TOLD_KEYS = [`${TOLD_PREFIX}0`, `${TOLD_PREFIX}1`] as const;

export const toldSchema = z.object({ serverId: z.string() });
export type ToldServer = z.infer<typeof toldSchema>;

/** What one reader of a bucket has read of it. */
export class BucketTold {
  readonly #bus: Pick<Bus, "nc">;
  readonly #prefix: string;
  #told: ToldServer | undefined;

  constructor(bus: Pick<Bus, "nc">, bucket: BucketDefinition) {
    this.#bus = bus;
    this.#prefix = `$KV.${bucket.name}.${TOLD_PREFIX}`;
  }

  /** Takes the word in, or its deletion; false when the message is an entry like any other. */
  take(message: { readonly subject: string; readonly data: Uint8Array }): boolean {
    if (!message.subject.startsWith(this.#prefix)) return false;
    this.#told = readTold(message.data);
    return true;
  }

  /** The bucket was made anew, or has lost its end. */
  reset(): void {
    this.#told = undefined;
  }

  /**
   * Whether it was given for the server that this process is connected to. A server of a cluster is given back by the
   * others what it lost, so that there the word stands for all of them.
   */
  isTold(): boolean {
    const { info } = this.#bus.nc;
    return this.#told !== undefined && (this.#told.serverId === info?.server_id || info?.cluster !== undefined);
  }
}

/** What cannot be read says nothing. */
function readTold(data: Uint8Array): ToldServer | undefined {
  try {
    const text = Buffer.from(data.buffer, data.byteOffset, data.length).toString("utf8");
    return toldSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
