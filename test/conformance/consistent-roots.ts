/** A second reading of a proof of consistency (RFC 9162, section 2.1.4.2): the roots that it leads to. */
import { createHash } from "node:crypto";

const node = (left: Buffer, right: Buffer): Buffer =>
  createHash("sha256").update(Buffer.of(1)).update(left).update(right).digest();

/** Of the smaller and the larger log. Hashes and roots are in base64. */
export function consistentRoots(
  from: number,
  to: number,
  hashes: readonly string[],
  fromRoot: string,
): readonly [string, string] {
  const path = hashes.map((hash) => Buffer.from(hash, "base64"));
  if (from === to) return [fromRoot, fromRoot];
  // Where the smaller log is a whole subtree, its root begins the path.
  if ((from & (from - 1)) === 0) path.unshift(Buffer.from(fromRoot, "base64"));
  let [fn, sn] = [from - 1, to - 1];
  while (fn % 2 === 1) [fn, sn] = [fn >> 1, sn >> 1];
  const [first, ...rest] = path as [Buffer, ...Buffer[]];
  let [fr, sr] = [first, first];
  for (const hash of rest) {
    if (fn % 2 === 1 || fn === sn) {
      [fr, sr] = [node(hash, fr), node(hash, sr)];
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn >> 1, sn >> 1];
    } else sr = node(sr, hash);
    [fn, sn] = [fn >> 1, sn >> 1];
  }
  return [fr.toString("base64"), sr.toString("base64")];
}
