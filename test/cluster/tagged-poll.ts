/** Polls of a view by one device. Every second poll has the tag of the last body, so that a wrong 304 shows as an old view. */
import type { TrialClient } from "./trial-client.ts";

export class TaggedPoll<T> {
  readonly #client: Pick<TrialClient, "send">;
  readonly #step: string;
  #count = 0;
  #known: { readonly etag: string; readonly body: T } | undefined;

  /** `step` also is the last part of the path. */
  constructor(client: Pick<TrialClient, "send">, step: string) {
    this.#client = client;
    this.#step = step;
  }

  /** What the device shows after the answer: after 304, the view that it has. */
  async view(): Promise<T> {
    this.#count += 1;
    const headers: Record<string, string> = {};
    if (this.#known !== undefined && this.#count % 2 === 0) headers["if-none-match"] = this.#known.etag;
    const answer = await this.#client.send<T>(this.#step, "GET", `${this.#step}/`, { headers });
    if (answer.status !== 304) this.#known = { etag: answer.headers.get("etag") ?? "", body: answer.body };
    if (this.#known === undefined) throw new Error(`The first answer to ${this.#step} is 304.`);
    return this.#known.body;
  }
}
