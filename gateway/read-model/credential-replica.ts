/** Device credentials by their SHA-256, a replica of the bucket CREDENTIALS (design §2.2). */
import { bucketBeats } from "../../services/bus/beats.ts";
import { credentialEntrySchema } from "../../services/bus/messages/caller.ts";
import { CREDENTIALS } from "../../services/bus/streams.ts";
import type { LineLog } from "../../services/runtime/log.ts";
import { DEVICE_SCOPES, type DeviceScope } from "../http/route.ts";
import type { FeedTarget } from "./replica-feed.ts";

const PREFIX = `$KV.${CREDENTIALS.name}.`;

/** A scope as its bit in a credential's mask. */
export const scopeBit = (scope: DeviceScope): number => 1 << DEVICE_SCOPES.indexOf(scope);

export class CredentialReplica implements FeedTarget {
  readonly stream = `KV_${CREDENTIALS.name}`;
  readonly filter = `${PREFIX}>`;
  readonly bucket = CREDENTIALS;
  readonly beats = bucketBeats(CREDENTIALS);
  readonly table = new CredentialTable();
  readonly #log: LineLog;

  constructor(log: LineLog) {
    this.#log = log;
  }

  reset(): void {
    this.table.clear();
  }

  apply(subject: string, data: Uint8Array): void {
    const digest = Buffer.from(subject.slice(PREFIX.length), "hex").toString("latin1");
    if (digest.length !== 32) return;
    if (data.length === 0) {
      this.table.delete(digest);
      return;
    }
    const entry = parseEntry(data);
    if (entry === undefined) {
      // An unreadable entry grants no access.
      this.table.delete(digest);
      this.#log.warn({ stream: this.stream }, "an entry of the credentials bucket is not valid");
      return;
    }
    let mask = 0;
    for (const scope of entry.scopes) {
      const at = DEVICE_SCOPES.indexOf(scope as DeviceScope);
      if (at >= 0) mask |= 1 << at;
    }
    this.table.set(digest, entry.deviceId, entry.stationId, mask);
  }
}

function parseEntry(data: Uint8Array) {
  try {
    const text = Buffer.from(data.buffer, data.byteOffset, data.length).toString("utf8");
    return credentialEntrySchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

const SLOT_WORDS = 16;
const SLOT_DOUBLES = 8;
const KEY_WORDS = 8;
const STATE_WORD = 8;
const POLLED_WORD = 9;
const FULL_AT_DOUBLE = 5;
const DEVICE_DOUBLE = 6;
const STATION_DOUBLE = 7;

const EMPTY = 0;
const USED = 0x100;
/** A slot whose entry was removed: a look-up continues after it. */
const REMOVED = 0x200;
const MASK_BITS = 0xff;

const FIRST_CAPACITY = 1_024;
/** The share of used slots at which the table doubles, because look-ups become slow. */
const MAX_LOAD = 0.7;

/**
 * Device credentials by the SHA-256 of the credential, for a million devices: an open-addressing hash table in one block
 * of memory, because a million small objects would cost several times that and make every garbage collection slow.
 *
 * A slot has 64 bytes, one cache line, so that a look-up and the use of its result wait for memory only once:
 *
 *   word  0 … 7        8             9        10, 11           12, 13     14, 15
 *         SHA-256      state, mask   polled   full at (ms)     device id  station id
 *
 * "Full at" is the credential's throttle (`throttles.ts`). "Polled" is when this gateway last noted a poll with the credential,
 * in whole seconds (`poll-notes.ts`). So neither needs additional memory.
 */
export class CredentialTable {
  size = 0;
  #words!: Uint32Array;
  #doubles!: Float64Array;
  #capacity = 0;
  #touched = 0;
  readonly #key = new Uint32Array(KEY_WORDS);

  constructor() {
    this.#allocate(FIRST_CAPACITY);
  }

  /** The memory of the table. */
  get byteLength(): number {
    return this.#words.byteLength;
  }

  deviceId(slot: number): number {
    return this.#doubles[slot * SLOT_DOUBLES + DEVICE_DOUBLE] as number;
  }

  stationId(slot: number): number {
    return this.#doubles[slot * SLOT_DOUBLES + STATION_DOUBLE] as number;
  }

  /** One bit for each of DEVICE_SCOPES. */
  scopeMask(slot: number): number {
    return (this.#words[slot * SLOT_WORDS + STATE_WORD] as number) & MASK_BITS;
  }

  /** When the throttle's bucket is full again. */
  fullAtMs(slot: number): number {
    return this.#doubles[slot * SLOT_DOUBLES + FULL_AT_DOUBLE] as number;
  }

  setFullAtMs(slot: number, fullAtMs: number): void {
    this.#doubles[slot * SLOT_DOUBLES + FULL_AT_DOUBLE] = fullAtMs;
  }

  /** When a poll was last noted, in seconds since 1970; 0 when never. */
  polledAtSeconds(slot: number): number {
    return this.#words[slot * SLOT_WORDS + POLLED_WORD] as number;
  }

  setPolledAtSeconds(slot: number, seconds: number): void {
    this.#words[slot * SLOT_WORDS + POLLED_WORD] = seconds;
  }

  clear(): void {
    this.#allocate(FIRST_CAPACITY);
    this.size = 0;
  }

  /** The slot of a SHA-256, or -1. `digest` has one byte per character ("binary"). A slot is valid until the next `set`. */
  find(digest: string): number {
    const key = this.#key;
    for (let word = 0, at = 0; word < KEY_WORDS; word += 1, at += 4) {
      key[word] =
        digest.charCodeAt(at) |
        (digest.charCodeAt(at + 1) << 8) |
        (digest.charCodeAt(at + 2) << 16) |
        (digest.charCodeAt(at + 3) << 24);
    }
    return this.#find(key);
  }

  set(digest: string, deviceId: number, stationId: number, scopeMask: number): void {
    let slot = this.find(digest);
    if (slot < 0) {
      if (this.#touched + 1 > this.#capacity * MAX_LOAD) this.#grow();
      slot = this.#insert(this.#key);
      this.size += 1;
      this.setFullAtMs(slot, 0);
      this.setPolledAtSeconds(slot, 0);
    }
    this.#words[slot * SLOT_WORDS + STATE_WORD] = USED | scopeMask;
    this.#doubles[slot * SLOT_DOUBLES + DEVICE_DOUBLE] = deviceId;
    this.#doubles[slot * SLOT_DOUBLES + STATION_DOUBLE] = stationId;
  }

  delete(digest: string): void {
    const slot = this.find(digest);
    if (slot < 0) return;
    this.#words[slot * SLOT_WORDS + STATE_WORD] = REMOVED;
    this.size -= 1;
  }

  #find(key: Uint32Array): number {
    const words = this.#words;
    const lastSlot = this.#capacity - 1;
    const first = key[0] as number;
    for (let slot = first & lastSlot; ; slot = (slot + 1) & lastSlot) {
      const at = slot * SLOT_WORDS;
      const state = words[at + STATE_WORD] as number;
      if (state === EMPTY) return -1;
      if (words[at] === first && (state & USED) !== 0) {
        let word = 1;
        while (word < KEY_WORDS && words[at + word] === key[word]) word += 1;
        if (word === KEY_WORDS) return slot;
      }
    }
  }

  /** Uses the first free slot for this key, which must not be in the table. */
  #insert(key: Uint32Array): number {
    const words = this.#words;
    const lastSlot = this.#capacity - 1;
    let slot = (key[0] as number) & lastSlot;
    while (((words[slot * SLOT_WORDS + STATE_WORD] as number) & USED) !== 0) slot = (slot + 1) & lastSlot;
    if (words[slot * SLOT_WORDS + STATE_WORD] === EMPTY) this.#touched += 1;
    words.set(key, slot * SLOT_WORDS);
    words[slot * SLOT_WORDS + STATE_WORD] = USED;
    return slot;
  }

  /** Doubles the table. When removed entries fill it, makes a new table of the same size. */
  #grow(): void {
    const before = this.#words;
    this.#allocate(this.size > this.#capacity * (MAX_LOAD / 2) ? this.#capacity * 2 : this.#capacity);
    for (let at = 0; at < before.length; at += SLOT_WORDS) {
      if (((before[at + STATE_WORD] as number) & USED) === 0) continue;
      const slot = this.#insert(before.subarray(at, at + KEY_WORDS));
      this.#words.set(before.subarray(at, at + SLOT_WORDS), slot * SLOT_WORDS);
    }
  }

  #allocate(capacity: number): void {
    const memory = new ArrayBuffer(capacity * SLOT_WORDS * 4);
    this.#capacity = capacity;
    this.#touched = 0;
    this.#words = new Uint32Array(memory);
    this.#doubles = new Float64Array(memory);
  }
}
