/** How polls were answered, in plain numbers: a poll has no time for more. They are read when somebody asks for metrics. */
import type { ErrorCode } from "../../http/errors.ts";

/** Of one operation. */
export class PollCount {
  /** 200 with a body. */
  fresh = 0;
  /** 304: the device has it already. */
  unchanged = 0;
  readonly #refused: Map<ErrorCode, number>;

  constructor(codes: readonly ErrorCode[] = []) {
    this.#refused = new Map(codes.map((code) => [code, 0]));
  }

  refuse(code: ErrorCode): void {
    this.#refused.set(code, (this.#refused.get(code) ?? 0) + 1);
  }

  /** By answer: `200`, `304`, or the code of a refusal. */
  *answers(): Generator<readonly [answer: string, count: number]> {
    yield ["200", this.fresh];
    yield ["304", this.unchanged];
    yield* this.#refused;
  }
}

export class PollCounts {
  readonly #counts = new Map<string, PollCount>();

  /** `codes`: with which the operation refuses. */
  of(operationId: string, codes: readonly ErrorCode[] = []): PollCount {
    const known = this.#counts.get(operationId);
    if (known !== undefined) return known;
    const made = new PollCount(codes);
    this.#counts.set(operationId, made);
    return made;
  }

  *answers(): Generator<readonly [labels: { readonly operation: string; readonly answer: string }, count: number]> {
    for (const [operation, count] of this.#counts) {
      for (const [answer, times] of count.answers()) yield [{ operation, answer }, times];
    }
  }
}
