/** Finds statements that a file has twice, because a person or a program has appended one file to another. */
import { hash } from "node:crypto";
import { StatementRefusedError } from "./format.ts";
import { FORMAT_LIMITS } from "./limits.ts";

export class SeenStatements {
  readonly #keys = new Set<string>();

  /**
   * Notes a statement. Returns whether the file has had one with these names before. Throws `StatementRefusedError` when there are
   * too many.
   */
  isRepeated(names: readonly string[]): boolean {
    const key = hash("sha256", JSON.stringify(names), "base64");
    if (this.#keys.has(key)) return true;
    if (this.#keys.size >= FORMAT_LIMITS.statements) {
      const sentence = `The file has more than ${FORMAT_LIMITS.statements} statements; divide it and import the parts.`;
      throw new StatementRefusedError("too_large", sentence);
    }
    this.#keys.add(key);
    return false;
  }
}
