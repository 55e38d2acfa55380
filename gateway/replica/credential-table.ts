/**
 * Device credentials by the SHA-256 of the credential, for a million devices: an open-addressing hash table in typed
 * arrays, because a million small objects would cost several times the memory and make every garbage collection slow.
 * A credential's throttle lives in its slot, so throttling costs no memory of its own.
 */

const WORDS = 8;
const EMPTY = 0;
const USED = 1;
/** A slot whose entry was removed: look-ups go on past it. */
const REMOVED = 2;
const FIRST_CAPACITY = 1_024;
/** Beyond this share of slots in use, look-ups get long; the table doubles. */
const MAX_LOAD = 0.7;

export class CredentialTable {
  size = 0;
  deviceIds!: Float64Array;
  stationIds!: Float64Array;
  /** One bit for each of DEVICE_SCOPES. */
  scopeMasks!: Uint8Array;
  /** When the throttle's bucket is full again, in milliseconds; see `throttle/token-bucket.ts`. */
  fullAtMs!: Float64Array;
  #states!: Uint8Array;
  #keys!: Uint32Array;
  #capacity = 0;
  #touched = 0;
  readonly #key = new Uint32Array(WORDS);

  constructor() {
    this.#allocate(FIRST_CAPACITY);
  }

  get capacity(): number {
    return this.#capacity;
  }

  clear(): void {
    this.#allocate(FIRST_CAPACITY);
    this.size = 0;
  }

  /** The slot of a SHA-256 given as 32 characters, each one byte ("latin1"), or -1. A slot holds until the next `set`. */
  find(digest: string): number {
    const key = this.#key;
    for (let word = 0, at = 0; word < WORDS; word += 1, at += 4) {
      key[word] =
        digest.charCodeAt(at) |
        (digest.charCodeAt(at + 1) << 8) |
        (digest.charCodeAt(at + 2) << 16) |
        (digest.charCodeAt(at + 3) << 24);
    }
    return this.#find();
  }

  set(digest: string, deviceId: number, stationId: number, scopeMask: number): void {
    let slot = this.find(digest);
    if (slot < 0) {
      if (this.#touched + 1 > this.#capacity * MAX_LOAD) this.#grow();
      slot = this.#insert(this.#key);
      this.size += 1;
      this.fullAtMs[slot] = 0;
    }
    this.deviceIds[slot] = deviceId;
    this.stationIds[slot] = stationId;
    this.scopeMasks[slot] = scopeMask;
  }

  delete(digest: string): number {
    const slot = this.find(digest);
    if (slot < 0) return slot;
    this.#states[slot] = REMOVED;
    this.size -= 1;
    return slot;
  }

  #find(): number {
    const mask = this.#capacity - 1;
    const key = this.#key;
    const keys = this.#keys;
    const first = key[0] as number;
    for (let slot = first & mask; ; slot = (slot + 1) & mask) {
      const state = this.#states[slot];
      if (state === EMPTY) return -1;
      const at = slot * WORDS;
      if (state === USED && keys[at] === first) {
        let word = 1;
        while (word < WORDS && keys[at + word] === key[word]) word += 1;
        if (word === WORDS) return slot;
      }
    }
  }

  #insert(key: Uint32Array): number {
    const mask = this.#capacity - 1;
    let slot = (key[0] as number) & mask;
    while (this.#states[slot] === USED) slot = (slot + 1) & mask;
    if (this.#states[slot] === EMPTY) this.#touched += 1;
    this.#states[slot] = USED;
    this.#keys.set(key, slot * WORDS);
    return slot;
  }

  /** Twice the room, or the same room again when it is removed entries that fill it. */
  #grow(): void {
    const before = { ...this.#columns(), states: this.#states, keys: this.#keys, capacity: this.#capacity };
    this.#allocate(this.size > this.#capacity * (MAX_LOAD / 2) ? this.#capacity * 2 : this.#capacity);
    for (let old = 0; old < before.capacity; old += 1) {
      if (before.states[old] !== USED) continue;
      const slot = this.#insert(before.keys.subarray(old * WORDS, old * WORDS + WORDS));
      this.deviceIds[slot] = before.deviceIds[old] as number;
      this.stationIds[slot] = before.stationIds[old] as number;
      this.scopeMasks[slot] = before.scopeMasks[old] as number;
      this.fullAtMs[slot] = before.fullAtMs[old] as number;
    }
  }

  #columns() {
    const { deviceIds, stationIds, scopeMasks, fullAtMs } = this;
    return { deviceIds, stationIds, scopeMasks, fullAtMs };
  }

  #allocate(capacity: number): void {
    this.#capacity = capacity;
    this.#touched = 0;
    this.#states = new Uint8Array(capacity);
    this.#keys = new Uint32Array(capacity * WORDS);
    this.deviceIds = new Float64Array(capacity);
    this.stationIds = new Float64Array(capacity);
    this.scopeMasks = new Uint8Array(capacity);
    this.fullAtMs = new Float64Array(capacity);
  }
}
