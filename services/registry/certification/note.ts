/** Checkpoints of the log as signed notes, and proofs of inclusion as text (C2SP signed-note, tlog-checkpoint, tlog-proof). */
import { createHash } from "node:crypto";

interface NoteSigner {
  /** The log's name, without spaces and plus signs. */
  readonly name: string;
  /** 32 bytes of Ed25519. */
  readonly publicKey: Uint8Array;
  /** 64 bytes. */
  sign(text: string): Uint8Array;
}

/** The number of Ed25519 in the specification of signed notes. */
const ED25519 = 1;
const KEY_ID_BYTES = 4;

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

/** Distinguishes keys of one name; it is no secret and proves nothing. */
export function noteKeyId({ name, publicKey }: Pick<NoteSigner, "name" | "publicKey">): Buffer {
  const hash = createHash("sha256").update(`${name}\n`).update(Buffer.of(ED25519)).update(publicKey);
  return hash.digest().subarray(0, KEY_ID_BYTES);
}

/** The public key in the form that verifiers of notes accept. */
export function verifierKey(signer: Pick<NoteSigner, "name" | "publicKey">): string {
  const key = base64(Buffer.concat([Buffer.of(ED25519), signer.publicKey]));
  return `${signer.name}+${noteKeyId(signer).toString("hex")}+${key}`;
}

/** The log's signed statement about all its leaves at one size. */
export function checkpoint(
  signer: NoteSigner,
  { size, root }: { readonly size: number; readonly root: Uint8Array },
): string {
  const text = `${signer.name}\n${size}\n${base64(root)}\n`;
  const signature = base64(Buffer.concat([noteKeyId(signer), signer.sign(text)]));
  return `${text}\n— ${signer.name} ${signature}\n`;
}

/** Proves offline that a leaf is in the log: with the leaf's bytes and the log's public key nothing else is needed. */
export function logProof(proof: {
  readonly index: number;
  readonly hashes: readonly Uint8Array[];
  readonly checkpoint: string;
}): string {
  const lines = ["c2sp.org/tlog-proof@v1", `index ${proof.index}`, ...proof.hashes.map(base64)];
  return `${lines.join("\n")}\n\n${proof.checkpoint}`;
}
