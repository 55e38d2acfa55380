#!/usr/bin/env node
/**
 * Verifies an exported closing of a reconciliation period, offline. It needs Node 18 and nothing else; copy it anywhere.
 *
 *   node verify-closing.mjs CLOSING.ndjson --key PUBLIC_KEY
 *
 * PUBLIC_KEY is the key in base64url, 43 characters. Take it from `GET /api/reconciliation/v1/closing-keys/` or from the
 * restaurant, not from the file: a forged file names a forged key.
 *
 * It checks the signature, that every line and issue of the closing is there, unchanged and in order, and that the signed
 * sums are those of the lines. Exit status: 0 verified, 1 not verified, 2 wrong usage. docs/reconciliation.md has the format.
 */
import { createHash, createPublicKey, verify } from "node:crypto";
import { createReadStream, realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

const FORMAT = "device-payments/closing";
const VERSION = 1;
/** SubjectPublicKeyInfo of an Ed25519 key, up to its 32 bytes (RFC 8410). */
const SPKI_HEAD = Buffer.from("302a300506032b6570032100", "hex");

/** Why a file is not verified, in one sentence. */
class NotVerified extends Error {}

/** The canonical form of JSON, which is hashed and signed. */
export function canonicalJson(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const names = Object.keys(value);
  // Node 18 has no `toSorted`.
  names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`).join(",")}}`;
}

const sha256 = (bytes) => createHash("sha256").update(bytes).digest();

/** Hashes items that must be in a strict order, so that no item can be there twice. */
class OrderedHash {
  #hash = createHash("sha256");
  #last;
  count = 0;

  constructor(name, isAfter) {
    this.name = name;
    this.isAfter = isAfter;
  }

  add(key, item, row) {
    if (this.#last !== undefined && !this.isAfter(key, this.#last))
      throw new NotVerified(`Row ${row}: the ${this.name}s are not in their order, or one is there twice.`);
    this.#last = key;
    this.count += 1;
    this.#hash.update(sha256(canonicalJson(item)));
  }

  check({ count, hash }) {
    if (this.count !== count)
      throw new NotVerified(`The closing has ${count} ${this.name}s, and the file has ${this.count}.`);
    if (this.#hash.digest("hex") !== hash)
      throw new NotVerified(`A ${this.name} of the file is not as it was when the period was closed.`);
  }
}

/** Sums by currency and kind, as the statement has them. */
class Totals {
  #sums = new Map();

  add({ currency, kind, amount_minor, fee_minor, tip_minor }) {
    const name = `${currency} ${kind}`;
    const sum = this.#sums.get(name) ?? { currency, kind, lines: 0, amount: 0n, fee: 0n, tip: 0n };
    sum.lines += 1;
    sum.amount += minorOf(amount_minor);
    sum.fee += minorOf(fee_minor ?? "0");
    sum.tip += minorOf(tip_minor ?? "0");
    this.#sums.set(name, sum);
  }

  check(stated) {
    const computed = [...this.#sums.values()].map(({ amount, fee, tip, ...rest }) => ({
      ...rest,
      amount_minor: String(amount),
      fee_minor: String(fee),
      tip_minor: String(tip),
    }));
    if (inOrder(computed) !== inOrder(stated))
      throw new NotVerified("The sums of the closing are not those of its lines.");
  }
}

/** Counts a text that is no amount as 0: it was changed, and the hash of the lines detects that. */
const minorOf = (text) => (/^-?\d+$/.test(text) ? BigInt(text) : 0n);

function inOrder(list) {
  const items = list.map(canonicalJson);
  items.sort();
  return items.join();
}

function readHead(text, publicKey) {
  const { statement, signature, ...rest } = parse(text, 1) ?? {};
  if (statement?.format !== FORMAT || statement.version !== VERSION)
    throw new NotVerified(`The file is not an exported closing of version ${VERSION}.`);
  if (Object.keys(rest).length > 0) throw new NotVerified("Row 1 has more than a statement and its signature.");
  const keyId = sha256(publicKey).toString("hex").slice(0, 16);
  if (statement.key_id !== keyId)
    throw new NotVerified(`The closing was signed with the key ${statement.key_id}; the given key is ${keyId}.`);
  const key = createPublicKey({ key: Buffer.concat([SPKI_HEAD, publicKey]), format: "der", type: "spki" });
  const { value, ...about } = signature ?? {};
  const signed = Buffer.from(String(value), "base64url");
  const known = { algorithm: "Ed25519", key_id: keyId, public_key: publicKey.toString("base64url") };
  const isUnchanged =
    signed.toString("base64url") === value && Object.entries(about).every(([name, given]) => known[name] === given);
  if (!isUnchanged || !verify(null, Buffer.from(canonicalJson(statement)), key, signed))
    throw new NotVerified("The signature does not fit: something was changed, or signed with another key.");
  return statement;
}

/** Text, a number, or white space between them. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*|\s+/g;

function parse(text, row) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new NotVerified(`Row ${row} is not JSON.`);
  }
  // Of two members with the same name, JSON.parse keeps the second; other programs may show the first.
  const compact = text.replaceAll(TOKEN, (token) => (token.trim() === "" ? "" : JSON.stringify(JSON.parse(token))));
  if (compact.length !== JSON.stringify(value).length)
    throw new NotVerified(`Row ${row} has a member twice; the service writes each once.`);
  return value;
}

/** Resolves to the signed statement. Rejects with a sentence. `rows` are the rows of the exported file. */
export async function verifyClosing(rows, publicKey) {
  const lines = new OrderedHash("line", (a, b) => a > b);
  const issues = new OrderedHash("issue", (a, b) => a > b);
  const totals = new Totals();
  let statement;
  let row = 0;
  for await (const text of rows) {
    row += 1;
    if (statement === undefined) {
      statement = readHead(text, publicKey);
      continue;
    }
    if (text === "") continue;
    const { line, issue, ...rest } = parse(text, row) ?? {};
    if (Object.keys(rest).length > 0 || !(line ?? issue) || (line === undefined) === (issue === undefined))
      throw new NotVerified(`Row ${row} is neither a line nor an issue.`);
    if (line !== undefined) {
      lines.add(line.fingerprint, line, row);
      totals.add(line);
    } else issues.add(issue.issue_id, issue, row);
  }
  if (statement === undefined) throw new NotVerified("The file is empty.");
  lines.check(statement.lines);
  issues.check(statement.issues);
  totals.check(statement.totals);
  return statement;
}

/** Divides only at line feeds: `node:readline` also divides at characters that texts of statements contain. */
async function* rowsOf(chunks) {
  // Bytes that are no UTF-8 must not be read as U+FFFD, which a text may contain.
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let rest = "";
  for await (const chunk of chunks) {
    const rows = (rest + decoded(decoder, chunk)).split("\n");
    rest = rows.pop() ?? "";
    yield* rows;
  }
  rest += decoded(decoder);
  if (rest !== "") yield rest;
}

function decoded(decoder, chunk) {
  try {
    return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
  } catch {
    throw new NotVerified("The file has bytes that are no UTF-8, which the service never writes.");
  }
}

const USAGE = "Usage: node verify-closing.mjs CLOSING.ndjson --key PUBLIC_KEY\n";

function readArguments(given) {
  const place = given.indexOf("--key");
  const publicKey = Buffer.from(place < 0 ? "" : (given[place + 1] ?? ""), "base64url");
  const [file, ...others] = place < 0 ? given : [...given.slice(0, place), ...given.slice(place + 2)];
  if (file === undefined || others.length > 0 || publicKey.length !== 32) return undefined;
  return { file, publicKey };
}

async function main() {
  const given = readArguments(process.argv.slice(2));
  if (given === undefined) {
    process.stderr.write(USAGE);
    return 2;
  }
  try {
    const rows = rowsOf(createReadStream(given.file));
    const { account, period, lines, issues, closed_at, closed_by } = await verifyClosing(rows, given.publicKey);
    process.stdout.write(
      `Verified: ${account.provider} ${account.reference}, ${period.kind} ${period.from_date} to ${period.to_date}, ` +
        `${lines.count} lines, ${issues.count} issues, closed at ${closed_at} by ${closed_by.name}.\n`,
    );
    return 0;
  } catch (error) {
    process.stderr.write(`Not verified: ${error.message}\n`);
    return 1;
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exitCode = await main();
}
