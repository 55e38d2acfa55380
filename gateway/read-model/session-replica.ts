/** People's sessions by the SHA-256 of the token, a replica of the bucket SESSIONS. */
import { hash } from "node:crypto";
import { bucketBeats } from "../../services/bus/beats.ts";
import type { BusClock } from "../../services/bus/bus-clock.ts";
import { type SessionEntry, sessionEntrySchema } from "../../services/bus/messages/sessions.ts";
import { SESSIONS } from "../../services/bus/streams.ts";
import type { LineLog } from "../../services/runtime/log.ts";
import type { FeedTarget } from "./replica-feed.ts";

const PREFIX = `$KV.${SESSIONS.name}.`;
/** The replica removes ended sessions when it has this many more entries than after the last removal. */
const SWEEP_EVERY = 1_000;

/** The key of a session on the bus: the SHA-256 of its token. */
export const sessionDigest = (token: string): string => hash("sha256", token, "hex");

export class SessionReplica implements FeedTarget {
  readonly stream = `KV_${SESSIONS.name}`;
  readonly filter = `${PREFIX}>`;
  readonly bucket = SESSIONS;
  readonly beats = bucketBeats(SESSIONS);
  readonly #sessions = new Map<string, SessionEntry>();
  readonly #log: LineLog;
  readonly #clock: Pick<BusClock, "nowMs">;
  #sweepAt = SWEEP_EVERY;

  constructor(log: LineLog, clock: Pick<BusClock, "nowMs">) {
    this.#log = log;
    this.#clock = clock;
  }

  /** The session of a token, or undefined when it is unknown or has expired. */
  find(token: string, nowMs: number): SessionEntry | undefined {
    return this.findDigest(sessionDigest(token), nowMs);
  }

  /** The same by the result of `sessionDigest`, for callers that must not keep the token. */
  findDigest(digest: string, nowMs: number): SessionEntry | undefined {
    const entry = this.#sessions.get(digest);
    return entry !== undefined && entry.expiresAtMs > nowMs ? entry : undefined;
  }

  reset(): void {
    this.#sessions.clear();
  }

  apply(subject: string, data: Uint8Array): void {
    const key = subject.slice(PREFIX.length);
    const entry = data.length === 0 ? undefined : parseEntry(data);
    if (entry === undefined) {
      this.#sessions.delete(key);
      if (data.length > 0) this.#log.warn({ stream: this.stream }, "an entry of the sessions bucket is not valid");
      return;
    }
    this.#sessions.set(key, entry);
    if (this.#sessions.size >= this.#sweepAt) this.#sweep(this.#clock.nowMs());
  }

  /** Removes ended sessions, because the bucket deletes old sessions without a message. */
  #sweep(nowMs: number): void {
    for (const [key, entry] of this.#sessions) {
      if (entry.expiresAtMs <= nowMs) this.#sessions.delete(key);
    }
    this.#sweepAt = this.#sessions.size + SWEEP_EVERY;
  }
}

function parseEntry(data: Uint8Array): SessionEntry | undefined {
  try {
    const text = Buffer.from(data.buffer, data.byteOffset, data.length).toString("utf8");
    return sessionEntrySchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
