/**
 * A demo is a list of steps: one request each, with what is kept of its answer for later steps. The same list is run
 * (`run-demo.ts`) and printed as lines for a shell (`curl-lines.ts`), so that both do the same.
 *
 * In paths, addresses and bodies `$NAME` is a kept value; in a body, `"$NAME"` alone becomes a number and `"${NAME}"` a text.
 */
export type Actor = "OWNER" | "CASHIER" | "OPERATOR" | "ROBOTS" | "COMPANION" | "SCREEN";

export interface Step {
  /** What the step shows, in one or two sentences. */
  readonly note?: string;
  readonly method: "GET" | "POST";
  /** Below the service's address, or `$NAME` of an address that an answer has given. */
  readonly path: string;
  /** Whose credential or session token it carries: the kept value of this name. */
  readonly as?: Actor;
  readonly body?: object;
  /** A form instead of JSON. */
  readonly form?: string;
  /** The names of kept values, each with the field of the answer that it is. */
  readonly keep?: Readonly<Record<string, string>>;
  /** Repeated once a second, `UNTIL_TRIES` times at most, until the answer holds this text. */
  readonly until?: string;
  /** The error code that this step is answered with on purpose. */
  readonly refusedWith?: string;
  /** Left out while this kept value is missing, and no error when it is refused. */
  readonly onlyWith?: string;
}

export interface Demo {
  readonly title: string;
  /** What is known before the first step. */
  readonly given: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}

export const UNTIL_TRIES = 15;

/** A field of an answer, as the shell's `field` finds it: the first one of this name. */
export function fieldOf(answer: string, name: string): string {
  return new RegExp(`"${name}":"?([^",}]*)`).exec(answer)?.[1] ?? "";
}
