/** Lets callers wait until a replica has applied a message of its stream, by the sequence of the message. */
export class SequenceWait {
  #sequence = 0;
  readonly #waiting = new Set<{ readonly sequence: number; readonly wake: () => void }>();

  /** The sequence of the message that the replica applied last; 0 when the stream starts over. */
  get sequence(): number {
    return this.#sequence;
  }

  reached(sequence: number): void {
    this.#sequence = sequence;
    if (this.#waiting.size === 0) return;
    for (const entry of this.#waiting) {
      if (entry.sequence <= sequence) entry.wake();
    }
  }

  /** Resolves true once the replica has reached this sequence, false when `timeoutMs` passes first. */
  async waitFor(sequence: number, timeoutMs: number): Promise<boolean> {
    if (this.#sequence >= sequence) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const entry = { sequence, wake: () => resolve(true) };
    const timer = setTimeout(() => resolve(false), timeoutMs);
    this.#waiting.add(entry);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(entry);
    }
  }
}
