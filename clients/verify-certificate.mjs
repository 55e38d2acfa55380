#!/usr/bin/env node
/**
 * Verifies a certificate of a device, offline. It needs Node 18 or a browser with Ed25519, and nothing else; copy it anywhere.
 *
 *   node verify-certificate.mjs CERTIFICATE.json CERTIFICATE.tlog-proof --key LOG_KEY [--now 2026-11-24]
 *
 * LOG_KEY is the verifier key of the installation, `name+id+key`. Take it from the installation's well-known path or from its
 * operator, not from who shows the certificate: a forger has a key, too.
 *
 * Exit status: 0 valid, 1 not valid, 2 expired. Whether a certificate was revoked later is in the log: ask the installation.
 */
const STATEMENT = "application/vnd.in-toto+json";
const PREDICATE = "https://in-toto.io/attestation/test-result/v0.1";
const PROOF = "c2sp.org/tlog-proof@v1";
const ED25519 = 1;
const KEY_BYTES = 32;
const KEY_ID_BYTES = 4;
const MOST_HASHES = 63;

/** What no verification can show. */
export const NOT_PROVEN = [
  "that the device behaves so where it is used",
  "that the installation shows the same log to everybody",
  "that the certificate was not revoked after this proof was made",
];

/** Why a certificate is not valid, in one sentence. */
export class NotValid extends Error {}

const utf8 = new TextEncoder();
const subtle = () => globalThis.crypto.subtle;

const concat = (...parts) => {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
};
const isSame = (one, other) => one.length === other.length && one.every((byte, at) => byte === other[at]);
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const sha256 = async (...parts) => new Uint8Array(await subtle().digest("SHA-256", concat(...parts)));

/** Base64 in its one form: what is written otherwise was changed. */
function bytesOf(text, what) {
  let bytes;
  try {
    bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    throw new NotValid(`${what} is no base64.`);
  }
  if (btoa(String.fromCharCode(...bytes)) !== text) throw new NotValid(`${what} is not written as it was.`);
  return bytes;
}

async function verifies(publicKey, signature, signed) {
  const key = await subtle().importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
  return subtle().verify({ name: "Ed25519" }, key, signature, signed);
}

/** `name+id+key` of a log. */
async function logKeyOf(text) {
  const [name, id, key, more] = text.split("+");
  const rest = [key, ...(more === undefined ? [] : text.split("+").slice(3))].join("+");
  const bytes = bytesOf(rest, "The key of the log");
  if (!name || bytes[0] !== ED25519 || bytes.length !== 1 + KEY_BYTES)
    throw new NotValid("The key of the log is no Ed25519 key.");
  const publicKey = bytes.slice(1);
  const keyId = (await sha256(utf8.encode(`${name}\n`), bytes)).slice(0, KEY_ID_BYTES);
  if (hex(keyId) !== id) throw new NotValid("The key of the log does not have its own id.");
  return { name, keyId, publicKey };
}

const NODE = Uint8Array.of(1);
const LEAF = Uint8Array.of(0);

/** RFC 9162, section 2.1.3.2. */
async function rootOf(leaf, { index, size, hashes }) {
  let [at, last, hash] = [index, size - 1, leaf];
  for (const step of hashes) {
    if (last === 0) throw new NotValid("The proof has more hashes than the log is deep.");
    if (at % 2 === 1 || at === last) {
      hash = await sha256(NODE, step, hash);
      while (at % 2 === 0 && at !== 0) [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
    } else hash = await sha256(NODE, hash, step);
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  if (last !== 0) throw new NotValid("The proof has fewer hashes than the log is deep.");
  return hash;
}

const numberOf = (text, what) => {
  if (!/^(?:0|[1-9]\d{0,14})$/.test(text)) throw new NotValid(`${what} is no number.`);
  return Number(text);
};

function proofOf(text) {
  const end = text.indexOf("\n\n");
  if (end < 0) throw new NotValid("The proof has no checkpoint.");
  const [head, index = "", ...hashes] = text.slice(0, end).split("\n");
  if (head !== PROOF || !index.startsWith("index ")) throw new NotValid("The file is no proof of inclusion.");
  if (hashes.length > MOST_HASHES) throw new NotValid("The proof has too many hashes.");
  return {
    index: numberOf(index.slice("index ".length), "The index"),
    hashes: hashes.map((hash) => bytesOf(hash, "A hash of the proof")),
    note: text.slice(end + 2),
  };
}

/** The checkpoint's size and root, once the log's signature is good. Signatures of others are ignored. */
async function checkpointOf(note, { name, keyId, publicKey }) {
  const end = note.indexOf("\n\n");
  const text = note.slice(0, end + 1);
  const [origin, size = "", root = "", ...more] = text.split("\n");
  if (end < 0 || origin !== name || more.length !== 1) throw new NotValid("The checkpoint is not of this log.");
  const lines = note.slice(end + 2).split("\n");
  if (lines.pop() !== "") throw new NotValid("The checkpoint breaks off.");
  let isSigned = false;
  for (const line of lines) {
    if (!line.startsWith("— ")) throw new NotValid("The checkpoint has a line that is no signature.");
    const [by, signature = "", ...others] = line.slice(2).split(" ");
    if (by !== name || others.length > 0) continue;
    const bytes = bytesOf(signature, "The signature of the checkpoint");
    if (!isSame(bytes.slice(0, KEY_ID_BYTES), keyId)) continue;
    if (!(await verifies(publicKey, bytes.slice(KEY_ID_BYTES), utf8.encode(text))))
      throw new NotValid("The signature of the checkpoint is wrong.");
    isSigned = true;
  }
  if (!isSigned) throw new NotValid("The checkpoint is not signed by this log.");
  return { size: numberOf(size, "The size of the log"), root: bytesOf(root, "The root of the log") };
}

/** The statement of the envelope, once its signature is good. */
async function statementOf(envelope, publicKey) {
  let parsed;
  try {
    parsed = JSON.parse(envelope);
  } catch {
    throw new NotValid("The certificate is no JSON.");
  }
  const { payload, payloadType, signatures } = parsed ?? {};
  if (payloadType !== STATEMENT || typeof payload !== "string" || !Array.isArray(signatures) || signatures.length !== 1)
    throw new NotValid("The certificate is no signed statement.");
  const body = bytesOf(payload, "The statement");
  const head = utf8.encode(`DSSEv1 ${utf8.encode(payloadType).length} ${payloadType} ${body.length} `);
  const signature = bytesOf(String(signatures[0]?.sig), "The signature of the certificate");
  if (!(await verifies(publicKey, signature, concat(head, body))))
    throw new NotValid("The signature of the certificate is wrong.");
  const statement = JSON.parse(new TextDecoder().decode(body));
  if (statement.predicateType !== PREDICATE) throw new NotValid("The statement is not about tests.");
  return statement;
}

/**
 * The statement of a valid certificate; `isExpired` when its time is over. Throws `NotValid`. `envelope` and `proof` are the
 * texts of the two files.
 */
export async function verifyCertificate({ envelope, proof, logKey, now = new Date() }) {
  const key = await logKeyOf(logKey);
  const { index, hashes, note } = proofOf(proof);
  const { size, root } = await checkpointOf(note, key);
  if (index >= size) throw new NotValid("The log is smaller than the index of the certificate.");
  const leaf = await sha256(LEAF, utf8.encode(envelope));
  if (!isSame(await rootOf(leaf, { index, size, hashes }), root))
    throw new NotValid("The certificate is not in the log.");
  const statement = await statementOf(envelope, key.publicKey);
  const validUntil = Date.parse(statement.predicate?.validUntil);
  if (Number.isNaN(validUntil)) throw new NotValid("The statement does not say until when it is valid.");
  return { statement, index, size, isExpired: now.getTime() > validUntil };
}

async function main(args) {
  const { readFileSync } = await import("node:fs");
  const option = (name) => args[args.indexOf(name) + 1];
  const [envelopeFile, proofFile] = args;
  if (
    !args.includes("--key") ||
    envelopeFile === undefined ||
    proofFile === undefined ||
    envelopeFile.startsWith("--")
  ) {
    process.stderr.write(
      "Use: verify-certificate.mjs CERTIFICATE.json CERTIFICATE.tlog-proof --key LOG_KEY [--now DATE]\n",
    );
    return 1;
  }
  try {
    const found = await verifyCertificate({
      envelope: readFileSync(envelopeFile, "utf8"),
      proof: readFileSync(proofFile, "utf8"),
      logKey: option("--key"),
      now: args.includes("--now") ? new Date(option("--now")) : new Date(),
    });
    const { predicate, subject } = found.statement;
    const what = `${subject?.[0]?.name}: ${predicate.provider}, ${predicate.capability}, ${predicate.result}`;
    process.stdout.write(`${found.isExpired ? "Expired" : "Valid"} until ${predicate.validUntil}: ${what}.\n`);
    process.stdout.write(`Certificate ${found.index} of a log with ${found.size}. It does not prove:\n`);
    for (const line of NOT_PROVEN) process.stdout.write(`  - ${line}\n`);
    return found.isExpired ? 2 : 0;
  } catch (error) {
    process.stderr.write(`Not valid: ${error.message}\n`);
    return 1;
  }
}

const isProgram = typeof process !== "undefined" && process.argv[1] !== undefined;
if (isProgram && import.meta.url.endsWith("/verify-certificate.mjs")) {
  const { realpathSync } = await import("node:fs");
  const { pathToFileURL } = await import("node:url");
  if (pathToFileURL(realpathSync(process.argv[1])).href === import.meta.url)
    process.exitCode = await main(process.argv.slice(2));
}
