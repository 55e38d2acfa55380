/**
 * `expect` for the invariants of every step, which random lives check a million times. It compares first, and calls `vitest`
 * only for a difference, which `vitest` then judges and prints. Calling it for each check would take longer than the steps.
 */
import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";

export const quickExpect = <T>(actual: T, message?: string): QuickExpectation<T> =>
  new QuickExpectation(actual, message);

class QuickExpectation<T> {
  readonly #actual: T;
  readonly #message: string | undefined;

  constructor(actual: T, message: string | undefined) {
    this.#actual = actual;
    this.#message = message;
  }

  toBe(expected: unknown): void {
    if (!Object.is(this.#actual, expected)) expect(this.#actual, this.#message).toBe(expected);
  }

  /** Strictly equal values are equal for `vitest` too. `vitest` also ignores fields that are undefined. */
  toEqual(expected: unknown): void {
    if (!isDeepStrictEqual(this.#actual, expected)) expect(this.#actual, this.#message).toEqual(expected);
  }

  toMatchObject(expected: object): void {
    const actual = this.#actual as Readonly<Record<string, unknown>>;
    if (!Object.entries(expected).every(([key, value]) => isDeepStrictEqual(actual[key], value)))
      expect(actual, this.#message).toMatchObject(expected);
  }

  toBeDefined(): void {
    if (this.#actual === undefined) expect(this.#actual, this.#message).toBeDefined();
  }

  toMatch(pattern: RegExp): void {
    if (!pattern.test(String(this.#actual))) expect(this.#actual, this.#message).toMatch(pattern);
  }

  toBeLessThanOrEqual(most: number): void {
    if (!(Number(this.#actual) <= most)) expect(this.#actual, this.#message).toBeLessThanOrEqual(most);
  }

  toBeGreaterThan(bound: number): void {
    if (!(Number(this.#actual) > bound)) expect(this.#actual, this.#message).toBeGreaterThan(bound);
  }

  toBeGreaterThanOrEqual(least: number): void {
    if (!(Number(this.#actual) >= least)) expect(this.#actual, this.#message).toBeGreaterThanOrEqual(least);
  }
}
