/** The tree is compared with vectors of Certificate Transparency, and its proofs with an independent verifier. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  consistencyProof,
  inclusionProof,
  leafHash,
  rootHash,
} from "../../../services/registry/certification/merkle.ts";

/** The leaves and roots of the tests of Certificate Transparency. */
const LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"].map(
  (hex) => leafHash(Buffer.from(hex, "hex")),
);
const ROOTS = [
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];
const node = (left: Uint8Array, right: Uint8Array): Uint8Array =>
  createHash("sha256").update(Buffer.of(1)).update(left).update(right).digest();

/** The root that a proof of inclusion gives (RFC 9162, section 2.1.3.2). */
function includedRoot(
  leaf: Uint8Array,
  { index, size, proof }: { index: number; size: number; proof: readonly Uint8Array[] },
) {
  let [at, last] = [index, size - 1];
  let hash = leaf;
  for (const step of proof) {
    if (last === 0) return undefined;
    if (at % 2 === 1 || at === last) {
      hash = node(step, hash);
      while (at % 2 === 0 && at !== 0) [at, last] = [at >> 1, last >> 1];
    } else hash = node(hash, step);
    [at, last] = [at >> 1, last >> 1];
  }
  return last === 0 ? hash : undefined;
}

/** Both roots that a proof of consistency gives, from the earlier root and the proof (RFC 9162, section 2.1.4.2). */
function consistentRoots(
  earlier: Uint8Array,
  { from, to, proof }: { from: number; to: number; proof: readonly Uint8Array[] },
) {
  const isPower = (from & (from - 1)) === 0;
  const [first, ...rest] = isPower ? [earlier, ...proof] : proof;
  if (first === undefined) return undefined;
  let [at, last] = [from - 1, to - 1];
  while (at % 2 === 1) [at, last] = [at >> 1, last >> 1];
  let [old, now] = [first, first];
  for (const step of rest) {
    if (last === 0) return undefined;
    if (at % 2 === 1 || at === last) {
      old = node(step, old);
      now = node(step, now);
      while (at % 2 === 0 && at !== 0) [at, last] = [at >> 1, last >> 1];
    } else now = node(now, step);
    [at, last] = [at >> 1, last >> 1];
  }
  return last === 0 ? { old, now } : undefined;
}

describe("the root of a tree", () => {
  test("no leaf: the hash of nothing", () => {
    expect(rootHash([]).toString("hex")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  });

  test.each(ROOTS.map((root, index) => [index + 1, root] as const))("%i leaves: the known root", (size, root) => {
    expect(rootHash(LEAVES.slice(0, size)).toString("hex")).toBe(root);
  });
});

describe("a proof about a tree", () => {
  const many = Array.from({ length: 70 }, (_, index) => leafHash(Buffer.from(`leaf ${index}`)));
  const sizes = [1, 2, 3, 4, 5, 6, 7, 8, 13, 31, 32, 33, 64, 70];

  test("inclusion: gives the root for each leaf, and not for a forged leaf", () => {
    for (const size of sizes) {
      const leaves = many.slice(0, size);
      const root = rootHash(leaves);
      for (const [index, leaf] of leaves.entries()) {
        const proof = inclusionProof(leaves, index);
        expect(includedRoot(leaf, { index, size, proof })).toEqual(root);
        expect(includedRoot(leafHash(Buffer.from("forged")), { index, size, proof })).not.toEqual(root);
      }
    }
  });

  test("consistency: gives both roots for each pair of sizes, and not for a changed tree", () => {
    for (const to of sizes) {
      for (let from = 1; from < to; from += 1) {
        const [before, after] = [many.slice(0, from), many.slice(0, to)];
        const proof = consistencyProof(after, from);
        expect(consistentRoots(rootHash(before), { from, to, proof })).toEqual({
          old: rootHash(before),
          now: rootHash(after),
        });
        const changed = after.with(0, leafHash(Buffer.from("forged")));
        const forged = consistentRoots(rootHash(before), { from, to, proof: consistencyProof(changed, from) });
        expect([forged?.old, forged?.now]).not.toEqual([rootHash(before), rootHash(changed)]);
      }
    }
    expect(consistencyProof(many, many.length)).toEqual([]);
  });

  test("a leaf or a size that the tree does not have: refused", () => {
    expect(() => inclusionProof(many, 70)).toThrow("The tree has 70 leaves, and none with the index 70.");
    expect(() => inclusionProof(many, -1)).toThrow(RangeError);
    expect(() => consistencyProof(many, 71)).toThrow("The tree has 70 leaves, and not 71.");
    expect(() => consistencyProof(many, 0)).toThrow(RangeError);
  });
});
