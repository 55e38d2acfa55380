#!/usr/bin/env node
/**
 * Verifies a certificate of a device, offline. It needs Node 18 or a browser with Ed25519, and nothing else; copy it anywhere.
 *
 *   node verify-certificate.mjs CERTIFICATE.json --key LOG_KEY [--now 2026-11-24]
 *   node verify-certificate.mjs ENVELOPE.json ENVELOPE.tlog-proof --key LOG_KEY
 *
 * A certificate is the answer of `…/certification-artifacts/{artifact_id}/certificate/`: envelope, proof, and the revocation if
 * there is one. The second form reads envelope and proof from two files.
 *
 * LOG_KEY is the verifier key of the installation, `name+id+key`. Take it from `/.well-known/certification-log/` of the
 * installation or from its operator, not from the person who shows the certificate: a forger has a key, too. An installation
 * that has changed its key has several: repeat --key.
 *
 * Exit status: 0 valid, 1 not valid, 2 revoked or expired. A copy from before the revocation does not contain it, and a person
 * who passes a copy on can remove it. So download the certificate from the installation, or ask there.
 */
const STATEMENT = "application/vnd.in-toto+json";
const PREDICATE = "https://in-toto.io/attestation/test-result/v0.1";
const REVOCATION = "urn:device-payments:certificate-revocation:v1";
const PROOF = "c2sp.org/tlog-proof@v1";
const ED25519 = 1;
const KEY_BYTES = 32;
const KEY_ID_BYTES = 4;
const MOST_HASHES = 63;

/** What no verification can show. */
export const NOT_PROVEN = [
  "that the device behaves in the same way where it is used",
  "that the installation shows the same log to each reader",
  "that the certificate is not revoked: a person who passes it on can remove the revocation, and a later one is not in it",
  "more than the owner who recorded the run confirms: the suite ran on the owner's machine, not in the service",
];

/** Why a certificate is not valid, in one sentence. */
export class NotValid extends Error {}

const utf8 = new TextEncoder();
// Node 18 has no global `crypto`.
const { subtle } = globalThis.crypto ?? (await import("node:crypto")).webcrypto;

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
const sha256 = async (...parts) => new Uint8Array(await subtle.digest("SHA-256", concat(...parts)));

/** Decodes canonical base64. Text in another form was changed. */
function bytesOf(text, what) {
  let bytes;
  try {
    bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    throw new NotValid(`${what} is not base64.`);
  }
  if (btoa(String.fromCharCode(...bytes)) !== text) throw new NotValid(`${what} is not in its original form.`);
  return bytes;
}

async function verifies(publicKey, signature, signed) {
  const key = await subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
  return subtle.verify({ name: "Ed25519" }, key, signature, signed);
}

/** Whether one of the keys has signed. */
async function isSignedBy(keys, signature, signed) {
  for (const { publicKey } of keys) if (await verifies(publicKey, signature, signed)) return true;
  return false;
}

/** `name+id+key` of a log. */
async function logKeyOf(text) {
  const [name, id, key, more] = text.split("+");
  const rest = [key, ...(more === undefined ? [] : text.split("+").slice(3))].join("+");
  const bytes = bytesOf(rest, "The key of the log");
  if (!name || bytes[0] !== ED25519 || bytes.length !== 1 + KEY_BYTES)
    throw new NotValid("The key of the log is not an Ed25519 key.");
  const publicKey = bytes.slice(1);
  const keyId = (await sha256(utf8.encode(`${name}\n`), bytes)).slice(0, KEY_ID_BYTES);
  if (hex(keyId) !== id) throw new NotValid("The id of the log's key does not belong to the key.");
  return { name, keyId, publicKey };
}

const NODE = Uint8Array.of(1);
const LEAF = Uint8Array.of(0);

/** RFC 9162, section 2.1.3.2. */
async function rootOf(leaf, { index, size, hashes }) {
  let [at, last, hash] = [index, size - 1, leaf];
  for (const step of hashes) {
    if (last === 0) throw new NotValid("The proof has more hashes than the log has levels.");
    if (at % 2 === 1 || at === last) {
      hash = await sha256(NODE, step, hash);
      while (at % 2 === 0 && at !== 0) [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
    } else hash = await sha256(NODE, hash, step);
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  if (last !== 0) throw new NotValid("The proof has fewer hashes than the log has levels.");
  return hash;
}

const numberOf = (text, what) => {
  if (!/^(?:0|[1-9]\d{0,14})$/.test(text)) throw new NotValid(`${what} is not a number.`);
  return Number(text);
};

function proofOf(text) {
  const end = text.indexOf("\n\n");
  if (end < 0) throw new NotValid("The proof has no checkpoint.");
  const [head, index = "", ...hashes] = text.slice(0, end).split("\n");
  if (head !== PROOF || !index.startsWith("index ")) throw new NotValid("The file is not a proof of inclusion.");
  if (hashes.length > MOST_HASHES) throw new NotValid("The proof has too many hashes.");
  return {
    index: numberOf(index.slice("index ".length), "The index"),
    hashes: hashes.map((hash) => bytesOf(hash, "A hash of the proof")),
    note: text.slice(end + 2),
  };
}

/** Returns size and root of the checkpoint after it has verified the log's signature. It ignores other signatures. */
async function checkpointOf(note, keys) {
  const [{ name }] = keys;
  const end = note.indexOf("\n\n");
  const text = note.slice(0, end + 1);
  const [origin, size = "", root = "", ...more] = text.split("\n");
  if (end < 0 || origin !== name || more.length !== 1) throw new NotValid("The checkpoint is not of this log.");
  const lines = note.slice(end + 2).split("\n");
  if (lines.pop() !== "") throw new NotValid("The checkpoint is not complete.");
  let isSigned = false;
  for (const line of lines) {
    if (!line.startsWith("— ")) throw new NotValid("The checkpoint has a line that is not a signature.");
    const [by, signature = "", ...others] = line.slice(2).split(" ");
    if (by !== name || others.length > 0) continue;
    const bytes = bytesOf(signature, "The signature of the checkpoint");
    const named = keys.filter(({ keyId }) => isSame(bytes.slice(0, KEY_ID_BYTES), keyId));
    if (named.length === 0) continue;
    if (!(await isSignedBy(named, bytes.slice(KEY_ID_BYTES), utf8.encode(text))))
      throw new NotValid("The signature of the checkpoint is wrong.");
    isSigned = true;
  }
  if (!isSigned) throw new NotValid("The checkpoint is not signed by this log.");
  return { size: numberOf(size, "The size of the log"), root: bytesOf(root, "The root of the log") };
}

/** Returns the statement of the envelope after it has verified its signature. */
async function statementOf(envelope, keys) {
  let parsed;
  try {
    parsed = JSON.parse(envelope);
  } catch {
    throw new NotValid("The certificate is not JSON.");
  }
  const { payload, payloadType, signatures } = parsed ?? {};
  if (payloadType !== STATEMENT || typeof payload !== "string" || !Array.isArray(signatures) || signatures.length !== 1)
    throw new NotValid("The certificate is not a signed statement.");
  const body = bytesOf(payload, "The statement");
  const head = utf8.encode(`DSSEv1 ${utf8.encode(payloadType).length} ${payloadType} ${body.length} `);
  const signature = bytesOf(String(signatures[0]?.sig), "The signature of the certificate");
  if (!(await isSignedBy(keys, signature, concat(head, body))))
    throw new NotValid("The signature of the certificate is wrong.");
  return JSON.parse(new TextDecoder().decode(body));
}

/** Returns a statement that is in the log, and its place. */
async function loggedStatement({ envelope, proof }, keys) {
  const { index, hashes, note } = proofOf(proof);
  const { size, root } = await checkpointOf(note, keys);
  if (index >= size) throw new NotValid("The log is smaller than the index of the certificate.");
  const leaf = await sha256(LEAF, utf8.encode(envelope));
  if (!isSame(await rootOf(leaf, { index, size, hashes }), root))
    throw new NotValid("The certificate is not in the log.");
  return { statement: await statementOf(envelope, keys), index, size };
}

/** Throws `NotValid` unless the log has a revocation of this envelope. */
async function checkRevocation(revocation, envelope, keys) {
  const { statement } = await loggedStatement(revocation, keys);
  const revoked = statement.subject?.[0]?.digest?.sha256;
  if (statement.predicateType !== REVOCATION || revoked !== hex(await sha256(utf8.encode(envelope))))
    throw new NotValid("The revocation is of another certificate.");
  return statement.predicate;
}

/**
 * Returns the statement of a valid certificate, with `isExpired`, and `revocation` when it was revoked. Throws `NotValid`.
 * `envelope` and `proof` are the texts of the two files, `logKeys` the verifier keys of one log.
 */
export async function verifyCertificate({ envelope, proof, revocation, logKeys, now = new Date() }) {
  const keys = await Promise.all(logKeys.map(logKeyOf));
  if (keys.length === 0 || keys.some(({ name }) => name !== keys[0].name))
    throw new NotValid("The keys are not of one log.");
  const { statement, index, size } = await loggedStatement({ envelope, proof }, keys);
  if (statement.predicateType !== PREDICATE || statement.predicate?.result !== "PASSED")
    throw new NotValid("The statement is not about passed tests.");
  const validUntil = Date.parse(statement.predicate.validUntil);
  if (Number.isNaN(validUntil)) throw new NotValid("The statement does not name the end of its validity.");
  const revoked = revocation === undefined ? undefined : await checkRevocation(revocation, envelope, keys);
  return { statement, index, size, isExpired: !(now.getTime() <= validUntil), revocation: revoked };
}

/** The parts of a certificate's file. Throws `NotValid`. */
export function partsOf(text) {
  let parsed;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new NotValid("The certificate is not JSON.");
  }
  const { envelope, proof, revocation, ...rest } = parsed ?? {};
  const texts = [envelope, proof, ...(revocation === undefined ? [] : [revocation?.envelope, revocation?.proof])];
  if (texts.some((part) => typeof part !== "string") || Object.keys(rest).length > 0)
    throw new NotValid("The file is not a certificate.");
  // Text in another form was changed.
  if (JSON.stringify(parsed) !== text.replace(/\n$/, ""))
    throw new NotValid("The certificate is not in its original form.");
  return { envelope, proof, ...(revocation === undefined ? {} : { revocation }) };
}

const USAGE = "Use: verify-certificate.mjs CERTIFICATE.json [ENVELOPE.tlog-proof] --key LOG_KEY [--now DATE]\n";

function readArguments(args) {
  const [files, logKeys] = [[], []];
  let now = new Date();
  for (let at = 0; at < args.length; at += 1) {
    if (args[at] === "--key") logKeys.push(args[++at] ?? "");
    else if (args[at] === "--now") now = new Date(args[++at] ?? "");
    else if (args[at].startsWith("-")) return undefined;
    else files.push(args[at]);
  }
  const isRight = (files.length === 1 || files.length === 2) && logKeys.length > 0 && !Number.isNaN(now.getTime());
  return isRight ? { files, logKeys, now } : undefined;
}

async function main(args) {
  const { readFileSync } = await import("node:fs");
  // A reader of the output that ends early, such as `head`, does not change the result.
  process.stdout.on("error", () => undefined);
  const options = readArguments(args);
  if (options === undefined) {
    process.stderr.write(USAGE);
    return 1;
  }
  let texts;
  try {
    texts = options.files.map((file) => readFileSync(file, "utf8"));
  } catch (error) {
    process.stderr.write(`Not verified: ${error.message}. Name a file that can be read.\n`);
    return 1;
  }
  try {
    const [text, proof] = texts;
    const parts = proof === undefined ? partsOf(text) : { envelope: text, proof };
    const found = await verifyCertificate({ ...parts, logKeys: options.logKeys, now: options.now });
    process.stdout.write(`${sentenceOf(found)}\n`);
    process.stdout.write(`Certificate ${found.index} of a log with ${found.size}. It does not prove:\n`);
    for (const line of NOT_PROVEN) process.stdout.write(`  - ${line}\n`);
    return found.isExpired || found.revocation !== undefined ? 2 : 0;
  } catch (error) {
    process.stderr.write(`Not valid: ${error.message}\n`);
    return 1;
  }
}

/** What was verified, for a person. */
export function sentenceOf({ statement, isExpired, revocation }) {
  const { predicate, subject } = statement;
  const what = `${subject?.[0]?.name}: ${predicate.provider}, ${predicate.capability}, ${predicate.result}`;
  if (revocation !== undefined) return `Revoked at ${revocation.revokedAt} (${revocation.reason}): ${what}.`;
  return `${isExpired ? "Expired at" : "Valid until"} ${predicate.validUntil}: ${what}.`;
}

if (typeof process !== "undefined" && process.argv[1] !== undefined) {
  const { realpathSync } = await import("node:fs");
  const { pathToFileURL } = await import("node:url");
  // The file may have any name.
  if (pathToFileURL(realpathSync(process.argv[1])).href === import.meta.url)
    process.exitCode = await main(process.argv.slice(2));
}
