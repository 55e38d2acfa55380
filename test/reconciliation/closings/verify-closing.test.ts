/** The script that verifies an exported closing runs alone in an empty folder, and finds every kind of forgery. */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Closing } from "../../../services/bus/messages/reconciliation-closings.ts";
import { type CanonicalObject, canonicalJson } from "../../../services/reconciliation/canonical-json.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { DAY, type RunDatabase, type RunWorld, startRunDatabase } from "../matching/run-world.ts";
import { close, exportedRows, newKey, writeRows } from "./closing-world.ts";

const SCRIPT = join(import.meta.dirname, "..", "..", "..", "clients", "verify-closing.mjs");
/** Characters that a wrong JSON encoder, a wrong splitter of rows or a wrong order of names would get wrong. */
const ODD = 'a"b\\c/d\u0001\u2028\u2029\u007f \u00e9 \u{1f600}\ufffd\t\n\r';

let databases: RunDatabase;
let world: RunWorld;
let closing: Closing;
let rows: readonly string[];
const folder = temporaryFolder("verify");

beforeAll(async () => {
  databases = await startRunDatabase();
  world = await databases.openWorld();
  const accountId = world.terminalAccountId;
  const names = ["one", "two", "three"].map((name) => `${name} ${randomUUID()}`);
  await world.importLines(
    accountId,
    names.map((name, index) => ({
      name,
      providerReference: name,
      amountMinor: 100 + index,
      tipMinor: 10,
      feeMinor: -2,
      text: ODD,
    })),
  );
  await world.database`
    update statement_lines set details = ${JSON.stringify({ "\u{1f600}": ODD, "\uffee": "", b: "2", a: "1", aa: "3" })}::text::jsonb
    where account_id = ${accountId}`;
  await world.run(accountId);
  await world.database`delete from wanted_runs`;
  await world.database`
    update issues set status = 'closed', resolved_at = now(), resolved_by = 7, reason = ${ODD}, assignee_id = null
    where organization_id = ${world.organizationId}`;
  closing = await close(world, accountId, { reason: "All “decided”." });
  rows = await exportedRows(world, closing);
  copyFileSync(SCRIPT, join(folder.path, "verify-closing.mjs"));
});
afterAll(async () => {
  folder.remove();
  await databases.stop();
});

interface Verdict {
  readonly status: number;
  readonly output: string;
}

async function verify(fileRows: readonly string[], key = closing.signature.publicKey): Promise<Verdict> {
  const file = join(folder.path, "closing.ndjson");
  writeRows(file, fileRows);
  return await runScript([file, "--key", key]);
}

async function runScript(argument: readonly string[], nodeOptions: readonly string[] = []): Promise<Verdict> {
  const options = { cwd: folder.path, env: {} };
  const command = [...nodeOptions, join(folder.path, "verify-closing.mjs"), ...argument];
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, command, options);
    return { status: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { status: code, output: stdout + stderr };
  }
}

const changed = (row: number, change: (text: string) => string): string[] =>
  rows.map((text, index) => (index === row ? change(text) : text));
const lastRow = () => rows.length - 1;

describe("an exported closing", () => {
  test("an unchanged file: the script verifies it", async () => {
    expect(rows).toHaveLength(1 + 3 + 3);
    const { status, output } = await verify(rows);
    expect(output).toMatch(
      new RegExp(`^Verified: terminal M-1, day ${DAY} to ${DAY}, 3 lines, 3 issues, closed at .* by Operator 7\\.\n$`),
    );
    expect(status).toBe(0);
  });

  test("a file with other white space and another order of members: the script verifies it", async () => {
    const reordered = rows.map((text) => {
      const { line, ...rest } = JSON.parse(text) as { line?: object };
      const turned = line && Object.fromEntries(Object.entries(line).toReversed());
      return JSON.stringify(turned === undefined ? rest : { line: turned }).replace(/^\{/, "{ ");
    });
    expect(await verify(reordered)).toMatchObject({ status: 0 });
  });

  test.each([
    [
      "another amount of a line",
      () => changed(1, (row) => row.replace('"amount_minor":"10', '"amount_minor":"20')),
      /A line of the file is not/,
    ],
    ["another text of a line", () => changed(2, (row) => row.replace('a\\"b', "x")), /A line of the file is not/],
    ["a removed line", () => rows.filter((_, index) => index !== 2), /The closing has 3 lines, and the file has 2/],
    ["a line twice", () => [...rows.slice(0, 2), ...rows.slice(1)], /not in their order/],
    [
      "a line in another place",
      () => [rows[0] ?? "", rows[2] ?? "", rows[1] ?? "", ...rows.slice(3)],
      /not in their order/,
    ],
    [
      "another reason of an issue",
      () => changed(lastRow(), (row) => row.replace('a\\"b', "x")),
      /An? issue of the file is not/,
    ],
    ["an issue twice", () => [...rows, rows[lastRow()] ?? ""], /not in their order/],
    ["a removed issue", () => rows.slice(0, -1), /The closing has 3 issues, and the file has 2/],
    [
      "another sum",
      () => changed(0, (row) => row.replace('"amount_minor":"303"', '"amount_minor":"403"')),
      /The signature does not fit/,
    ],
    [
      "another person",
      () => changed(0, (row) => row.replace("Operator 7", "Operator 8")),
      /The signature does not fit/,
    ],
    [
      "another signature",
      () =>
        changed(
          0,
          withSignature(() => Buffer.alloc(64, 1).toString("base64url")),
        ),
      /The signature does not fit/,
    ],
    ["no signature", () => changed(0, (row) => row.replace(/,"signature":.*\}$/, "}")), /The signature does not fit/],
    [
      "another format",
      () => changed(0, (row) => row.replace('"version":1', '"version":2')),
      /not an exported closing of version 1/,
    ],
    ["a row that is neither a line nor an issue", () => [...rows, "{}"], /neither a line nor an issue/],
    ["a row that is no JSON", () => [...rows, "x"], /Row 8 is not JSON/],
    ["an empty file", () => [], /not an exported closing|not JSON|empty/],
    [
      "another amount before the amount of a line",
      () => changed(1, (row) => row.replace('{"line":{', '{"line":{"amount_minor":"999999",')),
      /Row 2 has a member twice/,
    ],
    [
      "another line before a line, in its row",
      () => changed(1, (row) => row.replace("{", '{"line":{"amount_minor":"999999"},')),
      /Row 2 has a member twice/,
    ],
    [
      "a member twice, one of them with an escape in its name",
      () => changed(lastRow(), (row) => row.replace('{"issue":{', '{"issue":{"re\\u0061son":"Paid back.",')),
      /Row 7 has a member twice/,
    ],
    [
      "another reason before the reason of the statement",
      () => changed(0, (row) => row.replace('{"statement":{', '{"statement":{"reason":"Nothing is open.",')),
      /Row 1 has a member twice/,
    ],
    [
      "a note beside the statement",
      () => changed(0, (row) => row.replace("{", '{"note":"All is paid.",')),
      /Row 1 has more than a statement and its signature/,
    ],
    [
      "the key of a forger beside the signature",
      () => changed(0, (row) => row.replace(/"public_key":"[^"]*"/, `"public_key":"${"A".repeat(43)}"`)),
      /The signature does not fit/,
    ],
    [
      "another name of the key beside the signature",
      () => changed(0, (row) => row.replace(/"key_id":"[^"]*","public_key"/, '"key_id":"0","public_key"')),
      /The signature does not fit/,
    ],
    [
      "more behind the signature",
      () => changed(0, (row) => row.replace(/"value":"([^"]*)"/, '"value":"$1!!"')),
      /The signature does not fit/,
    ],
    ["a row that is null", () => [...rows, "null"], /Row 8 is neither a line nor an issue/],
    ["a line that is null", () => [...rows, '{"line":null}'], /Row 8 is neither a line nor an issue/],
    ["a head that is null", () => ["null", ...rows], /not an exported closing/],
    [
      "a line with an amount that is no number",
      () => changed(1, (row) => row.replace('"amount_minor":"', '"amount_minor":"x')),
      /A line of the file is not/,
    ],
  ])("a forged file, %s: the script does not verify it", async (_, forge, sentence) => {
    const forgedRows = forge();
    expect(forgedRows).not.toEqual(rows);
    const { status, output } = await verify(forgedRows);
    expect(output).toMatch(sentence);
    expect(status).toBe(1);
  });

  test("a file that a forger signed again: the script verifies it with the forger's key only", async () => {
    const forger = newKey();
    const forgerPublic = Buffer.from(forger.publicKey).toString("base64url");
    expect(await verify(rows, forgerPublic)).toMatchObject({ status: 1 });
    const statement = JSON.parse(closing.statement) as CanonicalObject;
    const forged = canonicalJson({ ...statement, key_id: forger.keyId, reason: "forged" });
    const value = Buffer.from(forger.sign(forged)).toString("base64url");
    const again = [`{"statement":${forged},"signature":{"value":"${value}"}}`, ...rows.slice(1)];
    expect(await verify(again, forgerPublic)).toMatchObject({ status: 0 });
    const { status, output } = await verify(again);
    expect(output).toContain(`was signed with the key ${forger.keyId}; the given key is ${closing.signature.keyId}`);
    expect(status).toBe(1);
  });
});

test("signed sums that differ from those of the lines: the script does not verify them", async () => {
  const signer = newKey();
  const key = Buffer.from(signer.publicKey).toString("base64url");
  const statement = JSON.parse(closing.statement) as { readonly totals: readonly Record<string, string | number>[] };
  const signedAgain = (totals: readonly Record<string, string | number>[]): string[] => {
    const text = canonicalJson({ ...statement, key_id: signer.keyId, totals });
    const value = Buffer.from(signer.sign(text)).toString("base64url");
    return [`{"statement":${text},"signature":{"value":"${value}"}}`, ...rows.slice(1)];
  };
  expect(statement.totals).toHaveLength(1);
  expect(await verify(signedAgain(statement.totals), key)).toMatchObject({ status: 0 });
  for (const name of ["lines", "amount_minor", "fee_minor", "tip_minor"]) {
    const totals = statement.totals.map((sum) => ({ ...sum, [name]: name === "lines" ? 4 : "999" }));
    const { status, output } = await verify(signedAgain(totals), key);
    expect([status, output], name).toEqual([1, "Not verified: The sums of the closing are not those of its lines.\n"]);
  }
});

test("a byte that is no UTF-8, in place of the replacement character: the script does not verify the file", async () => {
  const mark = Buffer.from("\ufffd");
  const bytes = Buffer.from(`${rows.join("\n")}\n`);
  const at = bytes.indexOf(mark);
  expect(at).toBeGreaterThan(0);
  const file = join(folder.path, "bytes.ndjson");
  writeFileSync(file, Buffer.concat([bytes.subarray(0, at), Buffer.of(0xff), bytes.subarray(at + mark.length)]));
  const { status, output } = await runScript([file, "--key", closing.signature.publicKey]);
  expect(output).toMatch(/^Not verified: The file has bytes that are no UTF-8/);
  expect(status).toBe(1);
});

test("a file without its last line feed, and the key before the file: the script verifies it", async () => {
  const file = join(folder.path, "cut.ndjson");
  writeFileSync(file, rows.join("\n"));
  expect(await runScript(["--key", closing.signature.publicKey, file])).toMatchObject({ status: 0 });
  writeFileSync(file, rows.slice(0, -1).join("\n"));
  expect(await runScript(["--key", closing.signature.publicKey, file])).toMatchObject({ status: 1 });
});

// With Node 18 the script once ended with "Not verified" for a valid closing.
test("a Node without the functions that Node 18 lacks: the script verifies the unchanged file and no other one", async () => {
  const older = join(folder.path, "older.mjs");
  const lacks = ["toSorted", "toReversed", "toSpliced", "with"].map((name) => `delete Array.prototype.${name};`);
  writeFileSync(
    older,
    [...lacks, "delete Object.groupBy; delete Promise.withResolvers; delete Array.fromAsync;"].join("\n"),
  );
  const onOlder = (argument: readonly string[]) => runScript(argument, ["--import", pathToFileURL(older).href]);
  const file = join(folder.path, "older.ndjson");
  writeRows(file, rows);
  expect(await onOlder([file, "--key", closing.signature.publicKey])).toMatchObject({ status: 0 });
  writeRows(file, rows.slice(0, -1));
  const { status, output } = await onOlder(["--key", closing.signature.publicKey, file]);
  expect(output).toContain("The closing has 3 issues, and the file has 2");
  expect(status).toBe(1);
});

const withSignature = (sign: () => string) => (row: string) => row.replace(/"value":"[^"]*"/, `"value":"${sign()}"`);

test("the script: wrong arguments exit with 2, a missing file exits with 1", async () => {
  expect(await runScript([])).toMatchObject({ status: 2 });
  expect(await runScript(["a.ndjson"])).toMatchObject({ status: 2 });
  expect(await runScript(["a.ndjson", "--key", "short"])).toMatchObject({ status: 2 });
  const { publicKey } = closing.signature;
  expect(await runScript(["--key", publicKey])).toMatchObject({ status: 2, output: expect.stringContaining("Usage:") });
  expect(await runScript(["a.ndjson", "b.ndjson", "--key", publicKey])).toMatchObject({ status: 2 });
  expect(await runScript(["none.ndjson", "--key", closing.signature.publicKey])).toMatchObject({ status: 1 });
});
