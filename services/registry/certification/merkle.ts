/**
 * The Merkle tree of a transparency log (RFC 6962, section 2.1), over SHA-256. A list of leaf hashes is the whole tree: a log of
 * certificates has thousands of leaves, and a proof is made in milliseconds.
 */
import { createHash } from "node:crypto";

const LEAF = Buffer.of(0);
const NODE = Buffer.of(1);

const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};

export const leafHash = (data: Uint8Array): Buffer => sha256(LEAF, data);

/** The root hash of a tree with these leaf hashes; without leaves, the hash of no bytes. */
export function rootHash(leaves: readonly Uint8Array[]): Buffer {
  const [only] = leaves;
  if (only === undefined) return sha256();
  if (leaves.length === 1) return Buffer.from(only);
  const split = splitOf(leaves.length);
  return sha256(NODE, rootHash(leaves.slice(0, split)), rootHash(leaves.slice(split)));
}

/** The hashes that prove that the leaf at this index is in the tree. Throws `RangeError` when there is no such leaf. */
export function inclusionProof(leaves: readonly Uint8Array[], index: number): Buffer[] {
  if (!Number.isInteger(index) || index < 0 || index >= leaves.length)
    throw new RangeError(`The tree has ${leaves.length} leaves, and none with the index ${index}.`);
  if (leaves.length === 1) return [];
  const split = splitOf(leaves.length);
  const [left, right] = [leaves.slice(0, split), leaves.slice(split)];
  return index < split
    ? [...inclusionProof(left, index), rootHash(right)]
    : [...inclusionProof(right, index - split), rootHash(left)];
}

/**
 * The hashes that prove that the tree of the first `size` leaves is the beginning of this tree. Throws `RangeError` for
 * a size that this tree never had.
 */
export function consistencyProof(leaves: readonly Uint8Array[], size: number): Buffer[] {
  if (!Number.isInteger(size) || size < 1 || size > leaves.length)
    throw new RangeError(`The tree has ${leaves.length} leaves, and not ${size}.`);
  return partOf(leaves, size, true);
}

/** With `isWhole` the earlier tree is a subtree of this one. The verifier has its hash, so the proof leaves it out. */
function partOf(leaves: readonly Uint8Array[], size: number, isWhole: boolean): Buffer[] {
  if (size === leaves.length) return isWhole ? [] : [rootHash(leaves)];
  const split = splitOf(leaves.length);
  const [left, right] = [leaves.slice(0, split), leaves.slice(split)];
  return size <= split
    ? [...partOf(left, size, isWhole), rootHash(right)]
    : [...partOf(right, size - split, false), rootHash(left)];
}

/** The largest power of two below the size. */
function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}
