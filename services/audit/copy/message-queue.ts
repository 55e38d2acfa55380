/** Between a feed that pushes and a writer that takes batches: they grow while the writer is busy, and a moment longer. */
export class MessageQueue<TMessage> {
  readonly #limit: number;
  readonly #messages: TMessage[] = [];
  /** Called when `#wanted` messages are there. */
  #onEnough: (() => void) | undefined;
  #wanted = 1;
  #onRoom: (() => void) | undefined;
  #ended: { readonly error: Error | undefined } | undefined;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Takes all messages of a feed, which waits while the queue is full. Never rejects; the writer learns of the end. */
  async fill(feed: AsyncIterable<TMessage>): Promise<void> {
    try {
      for await (const message of feed) {
        this.#messages.push(message);
        if (this.#messages.length >= this.#wanted) this.#onEnough?.();
        if (this.#messages.length >= this.#limit) await this.#room();
      }
      this.#end(undefined);
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /**
   * Up to `most` messages: those that arrived within `lingerMs` of the first, unless there are enough before; none when
   * `timeoutMs` passed without one. Rejects with the feed's error, and returns undefined when the feed has ended.
   */
  async take(most: number, timeoutMs: number, lingerMs: number): Promise<TMessage[] | undefined> {
    if (this.#messages.length === 0 && this.#ended === undefined) await this.#until(1, timeoutMs);
    if (this.#messages.length > 0 && this.#messages.length < most && this.#ended === undefined) {
      await this.#until(most, lingerMs);
    }
    if (this.#messages.length > 0) {
      const taken = this.#messages.splice(0, most);
      this.#onRoom?.();
      return taken;
    }
    if (this.#ended === undefined) return [];
    if (this.#ended.error !== undefined) throw this.#ended.error;
    return undefined;
  }

  #end(error: Error | undefined): void {
    this.#ended = { error };
    this.#onEnough?.();
  }

  #until(wanted: number, timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.#onEnough = undefined;
        resolve();
      };
      const timer = setTimeout(finish, timeoutMs);
      this.#wanted = wanted;
      this.#onEnough = finish;
    });
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRoom = () => {
        this.#onRoom = undefined;
        resolve();
      };
    });
  }
}
