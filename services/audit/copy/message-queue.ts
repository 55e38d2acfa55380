/**
 * Between a feed that pushes and a writer that takes what there is: a batch grows by itself while the writer is busy,
 * and a single message is written at once while it is not.
 */
export class MessageQueue<TMessage> {
  readonly #limit: number;
  readonly #messages: TMessage[] = [];
  #onMessage: (() => void) | undefined;
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
        this.#onMessage?.();
        if (this.#messages.length >= this.#limit) await this.#room();
      }
      this.#end(undefined);
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /**
   * Up to `most` messages, as soon as there is one; none when `timeoutMs` passed without. Rejects with the feed's error,
   * and returns undefined when the feed has ended.
   */
  async take(most: number, timeoutMs: number): Promise<TMessage[] | undefined> {
    if (this.#messages.length === 0 && this.#ended === undefined) await this.#message(timeoutMs);
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
    this.#onMessage?.();
  }

  #message(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.#onMessage = undefined;
        resolve();
      };
      const timer = setTimeout(finish, timeoutMs);
      this.#onMessage = finish;
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
