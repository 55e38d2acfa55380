/** The commands of reconciliation, as a person types them: against the whole system, with real files. */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { programEnvironment, runProgram } from "../support/running-program.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const CLIENTS = join(import.meta.dirname, "..", "..", "clients");
const COLLEAGUE = { email: "sara@sandbox.example", password: "a long enough password" };
const OPERATOR = { email: "rita@sandbox.example", password: "a long enough password" };

let system: TestSystem;
let folder: TemporaryFolder;
let operator: Person;
let owner: Person;
let cashier: Person;

beforeAll(async () => {
  system = await sharedSystem();
  folder = temporaryFolder("reconciliation-commands");
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  for (const person of [OPERATOR, COLLEAGUE])
    await owner.good("POST", "users/", { body: { ...person, name: "Rita", role: "reconciliation_operator" } });
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  operator = await logIn(system.baseUrl, "reconciliation", OPERATOR);
});
afterAll(async () => {
  await system.stop();
  folder.remove();
});

/** Runs a command as one of two people. Each command logs in, and one person may log in only 30 times a minute. */
const command = (name: "statement" | "recon", ...args: readonly string[]) =>
  commandOf(name === "recon" ? OPERATOR : COLLEAGUE, name, ...args);
async function commandOf(person: typeof OPERATOR, name: "statement" | "recon", ...args: readonly string[]) {
  const { email: OPERATOR_EMAIL, password: OPERATOR_PASSWORD } = person;
  const access = { BASE_URL: system.baseUrl, DATA_DIR: folder.path, OPERATOR_EMAIL, OPERATOR_PASSWORD };
  const program = runProgram(process.execPath, [join(CLIENTS, `${name}.ts`), ...args], {
    env: programEnvironment(access),
  });
  let printed = "";
  program.process.stdout?.on("data", (chunk: string) => {
    printed += chunk;
  });
  return { code: await program.ended, text: program.output(), printed };
}

async function addAccount(): Promise<string> {
  const body = { provider: "sandbox", reference: randomUUID(), name: "Bar", currency: "EUR", mode: "test" };
  return String((await operator.good<{ account_id: number }>("POST", "accounts/", { body })).account_id);
}

async function openOrder(): Promise<string> {
  return String(await newOrder(cashier, `stations/${system.sandbox.stations[0]?.stationId}`, "12.50"));
}

function statementFile(rows: number): string {
  const path = join(folder.path, `${randomUUID()}.csv`);
  const lines = Array.from(
    { length: rows },
    (_, index) => `${index + 1},${randomUUID()},,,12.50,EUR,2026-11-01T10:00:00.000Z`,
  );
  writeFileSync(path, `line,payment_id,reference,account,amount,currency,paid_at\n${lines.join("\n")}\n`);
  return path;
}
const DECLARED = ["--format", "sandbox", "--encoding", "utf-8"] as const;

describe("commands that list nothing", () => {
  test("accounts, issues, period list: each prints one sentence", async () => {
    const [accounts, issues, periods] = await Promise.all([
      command("statement", "accounts"),
      command("recon", "issues"),
      command("recon", "period", "list", "--from", "2026-11-01", "--to", "2026-11-01"),
    ]);
    expect(accounts).toMatchObject({ code: 0, printed: expect.stringMatching(/^There is no account yet: .+\n$/) });
    expect(issues).toMatchObject({ code: 0, printed: "No such issue waits for a decision.\n" });
    expect(periods).toMatchObject({ code: 0, printed: "There is no such period.\n" });
  });
});

describe("npm run statement", () => {
  test("import: sends the file with a bar and prints the result; withdraw: withdraws the import with a reason", async () => {
    const account = await addAccount();
    const { code, text } = await command("statement", "import", statementFile(3), "--account", account, ...DECLARED);
    expect(text).toContain("100 %");
    expect(text.replaceAll("\n", ""), "no control characters without a terminal").toMatch(/^[\x20-\x7e]*$/);
    expect(text).toMatch(/Import \d+ is imported: new lines: 3, known lines: 0, malformed rows: 0/);
    expect(code).toBe(0);
    const [, importId = ""] = /Import (\d+) is imported/.exec(text) ?? [];
    const taken = await command("statement", "withdraw", importId, "--reason", "The file of another bar.");
    expect(taken).toMatchObject({ code: 0, text: expect.stringMatching(/is withdraw(n|ing)\./) as string });
    expect((await command("statement", "list", "--account", account)).text).toContain(`Import ${importId} is withdraw`);
  });

  test("import without a declared format: names the possible formats; confirm: imports the file", async () => {
    const offered = await command("statement", "import", statementFile(2), "--account", await addAccount());
    expect(offered).toMatchObject({ code: 1, text: expect.stringContaining("The file can be sandbox") as string });
    const [, importId = ""] = /confirm (\d+)/.exec(offered.text) ?? [];
    const confirmed = await command("statement", "confirm", importId, ...DECLARED);
    expect(confirmed).toMatchObject({ code: 0, text: expect.stringContaining("new lines: 2") as string });
  });

  test("mapping: stored, used for a preview of a file, and tested with it", async () => {
    const path = join(folder.path, "bank.csv");
    writeFileSync(path, "Datum;Betrag\n01.11.2026;12,50\n02.11.2026;kaputt\n");
    const definition = join(folder.path, "mapping.json");
    const rules = { currency: { fixed: "EUR" }, amount: { rule: "signed", column: "Betrag", money_in: "positive" } };
    const dates = { date_formats: ["DD.MM.YYYY"], booked_on: { column: "Datum" }, kind: { fixed: "bank_credit" } };
    const text = { encoding: "utf-8", delimiter: ";", header_row: 1, decimal_separator: "," };
    writeFileSync(definition, JSON.stringify({ ...text, ...rules, ...dates }));
    const stored = await command("statement", "mapping", "store", "Bank", "--definition", definition);
    const [, mappingId = ""] = /Mapping (\d+) is version 1/.exec(stored.text) ?? [stored.text];
    const offered = await command("statement", "import", path, "--account", await addAccount());
    const [, importId = ""] = /confirm (\d+)/.exec(offered.text) ?? [offered.text];
    const shown = await command("statement", "preview", importId, "--mapping", mappingId);
    expect(shown.text).toContain("malformed\tBetrag: ");
    const tested = await command("statement", "mapping", "test", mappingId, "--import", importId);
    expect(tested.text).toContain("The test is done: 1 lines, 1 malformed rows.");
    const other = join(folder.path, "other.json");
    const amount = { ...rules.amount, column: "Summe" };
    writeFileSync(other, JSON.stringify({ ...text, ...rules, amount, ...dates }));
    const unfit = await command("statement", "mapping", "store", "Other bank", "--definition", other);
    const [, unfitId = ""] = /Mapping (\d+) is version 1/.exec(unfit.text) ?? [unfit.text];
    const refused = await command("statement", "mapping", "test", unfitId, "--import", importId);
    expect(refused).toMatchObject({ code: 1, printed: "", text: expect.stringContaining("Summe") as string });
    const confirmed = await command("statement", "confirm", importId, "--mapping", mappingId);
    expect(confirmed.text).toContain("new lines: 1, known lines: 0, malformed rows: 1");
  });

  test("import of a refused file with --json: prints the import as JSON, and its sentence as the error", async () => {
    const path = join(folder.path, "wrong.csv");
    writeFileSync(path, "a,b\n1,2\n");
    const refused = await command("statement", "import", path, "--account", await addAccount(), ...DECLARED, "--json");
    expect(refused.printed.trim().split("\n"), "the bar is on standard error").toHaveLength(1);
    expect(JSON.parse(refused.printed)).toMatchObject({ status: "refused", lines_new: 0 });
    expect(refused).toMatchObject({
      code: 1,
      text: expect.stringMatching(/Import \d+ is refused: [A-Z].*\.\n/) as string,
    });
  });

  test("import of an empty file without a declared format: one sentence", async () => {
    const path = join(folder.path, "empty.csv");
    writeFileSync(path, "");
    const refused = await command("statement", "import", path, "--account", await addAccount());
    const text = expect.stringMatching(/Import \d+ is refused: The file is empty: download it .*\.\n/) as string;
    expect(refused).toMatchObject({ code: 1, printed: "", text });
  });

  test.each([
    [["import"], 2, "Give the file"],
    [["import", "x.csv", "--account", "bar"], 2, "--account is a number"],
    [["frobnicate"], 2, "Use accounts, import"],
    [["import", "/no/such/file", "--account", "1"], 1, "cannot be read"],
    [["withdraw", "999999", "--reason", "Wrong."], 1, "(not_found)"],
    [["withdraw", "3", "--account", "1", "--reason", "Wrong."], 2, '"withdraw" has no option --account; see --help.'],
    [["mapping", "list", "--account", "1"], 2, '"mapping list" has no option --account; see --help.'],
  ] as const)("statement %j: one sentence, and its exit code", async (args, code, sentence) => {
    const ended = await command("statement", ...args);
    expect(ended).toMatchObject({ code, text: expect.stringContaining(sentence) as string });
    expect(ended.text).not.toContain("    at ");
  });
});

/** These tests use one account, and each test continues with the state of the test before it. */
describe("npm run recon", () => {
  let account: string;
  let issueIds: readonly string[];

  test("run: finds differences; close and undo: close one issue and reopen it", async () => {
    account = await addAccount();
    await command("statement", "import", statementFile(4), "--account", account, ...DECLARED);
    const { code, text } = await command("recon", "run", "--account", account);
    expect(text).toMatch(/Run \d+ is done\. Lines: 4, matched: 0/);
    expect(code).toBe(0);
    const listed = await command("recon", "issues", "--json", "--account", `statement:${account}`);
    const { issues } = JSON.parse(lastLine(listed.text)) as { issues: { issue_id: number }[] };
    issueIds = issues.map(({ issue_id: id }) => String(id));
    expect(issueIds).toHaveLength(4);
    const [issueId = ""] = issueIds;
    const closed = await command("recon", "close", issueId, "--reason", "Sold at the other bar.");
    expect(closed).toMatchObject({ code: 0, text: expect.stringContaining(`Issue ${issueId} is closed.`) as string });
    expect((await command("recon", "undo", issueId)).text).toContain(`Issue ${issueId} is open.`);
  });

  // A fixed defect: the command ignored such options, and closed the issues of all filials and of every status.
  test.each([
    [["close", "--kind", "tip", "--filial", "3"], '"close" has no option --filial; see --help.\n'],
    [["close", "--kind", "tip", "--status", "assigned"], '"close" has no option --status; see --help.\n'],
    [["close", "5", "--kind", "tip"], '"close ISSUE" has no option --kind; see --help.\n'],
    [["period", "close", "--account", "1", "--to", "2026-11-30"], '"period close" has no option --to; see --help.\n'],
  ] as const)("recon %j: refused, because the command does not use this option", async (args, text) => {
    expect(await command("recon", ...args, "--reason", "Dealt with.")).toMatchObject({ code: 2, text });
  });

  test("close of a kind whose issues are all refused: names each, and ends with 1", async () => {
    const refused = [{ issue_id: 7, reason: "money_may_settle" }];
    const closing = { closed_ids: [], refused, has_more: false };
    const service = createServer(({ url = "" }, response) => {
      const body = url.endsWith("/close/") ? closing : { token: "token" };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
    const baseUrl = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
    const args = ["--kind", "unmatched_money", "--reason", "Dealt with.", "--base-url", baseUrl];
    expect(await command("recon", "close", ...args)).toMatchObject({
      code: 1,
      printed: "0 issues are closed.\nIssue 7 is not closed: money_may_settle.\n",
      text: expect.stringContaining("1 issues are not closed.\n") as string,
    });
    await new Promise((resolve) => service.close(resolve));
  });

  test("attribute without an order: prints its usage before it logs in", async () => {
    expect(await command("recon", "attribute", "3", "--reason", "Paid.")).toMatchObject({ code: 2 });
    const both = ["--confirm", "1", "--withdraw", "1"];
    expect(await command("recon", "attribute", "3", ...both)).toMatchObject({ code: 2 });
  });

  test("attribute: up to the owner's limit by one person; above it, one person proposes and another confirms", async () => {
    const [first = "", second = ""] = issueIds;
    const why = ["--reason", "The guest has the slip."];
    const alone = await command("recon", "attribute", first, "--order", await openOrder(), ...why);
    expect(alone).toMatchObject({ code: 0, text: expect.stringContaining(`Issue ${first} is attributed.`) as string });

    const limit = { currency: "EUR", alone_up_to: "12.49", reason: "Two people, please." };
    await owner.good("POST", "attribution-limits/", { body: limit });
    expect(await operator.good("GET", `issues/${second}/`)).toMatchObject({ alone_up_to: "12.49" });
    const proposed = await command("recon", "attribute", second, "--order", await openOrder(), ...why);
    const [, proposal = ""] = /Proposal (\d+) waits for another person/.exec(proposed.text) ?? [proposed.text];
    expect(proposed).toMatchObject({ code: 0, text: expect.stringContaining(`Issue ${second} is open.`) as string });
    const own = await command("recon", "attribute", second, "--confirm", proposal);
    expect(own).toMatchObject({ code: 1, text: expect.stringContaining("another person confirms") as string });
    const confirmed = await commandOf(COLLEAGUE, "recon", "attribute", second, "--confirm", proposal);
    expect(confirmed.text).toContain(`Issue ${second} is attributed.`);
    const limits = await owner.good<{ attribution_limits: object[] }>("GET", "attribution-limits/");
    expect(limits.attribution_limits).toMatchObject([{ currency: "EUR", alone_up_to: "12.49" }]);
  });

  test("close of a kind: closes all its issues; period: closes, exports and verifies a day; report: shows the day", async () => {
    const days = ["--from", "2026-11-01", "--to", "2026-11-01", "--account", account];
    // The run that the import has caused may not have begun yet.
    const path = `periods/?kind=day&from_date=2026-11-01&to_date=2026-11-01&account_id=${account}`;
    const states = async () => {
      const { periods } = await operator.good<{ periods: { state: string; missing: object[] }[] }>("GET", path);
      return periods.map(({ state, missing }) => ({ state, missing }));
    };
    await expect.poll(states).toMatchObject([{ missing: [{ code: "issues_undecided", count: 2 }] }]);
    const listed = await command("recon", "period", "list", ...days);
    expect(listed.text).toContain("open\tissues_undecided 2");
    const filter = ["--account", `statement:${account}`, "--kind", "unmatched_money"];
    const all = await command("recon", "close", ...filter, "--reason", "Sold at the other bar.");
    expect(all.text).toMatch(/2 issues are closed\./);
    await expect.poll(states).toMatchObject([{ state: "ready" }]);
    const [, undo = ""] = /npm run recon -- (undo [\d ]+)/.exec(all.text) ?? [all.text];
    const undone = await command("recon", ...undo.trim().split(" "));
    expect(undone).toMatchObject({ code: 0, text: expect.stringContaining("2 issues wait for a decision.") as string });
    const [attributed = "", ...open] = issueIds.filter((_, index) => index !== 1);
    const refused = await command("recon", "undo", attributed, ...open);
    expect(refused).toMatchObject({
      code: 1,
      text: expect.stringContaining(`Issue ${attributed} is not reopened: issue_attributed.`) as string,
    });
    await expect.poll(states).toMatchObject([{ missing: [{ code: "issues_undecided", count: 2 }] }]);
    await command("recon", "close", ...filter, "--reason", "Sold at the other bar.");
    await expect.poll(states).toMatchObject([{ state: "ready" }]);
    const which = ["--account", account, "--from", "2026-11-01"];
    const closed = await command("recon", "period", "close", ...which, "--reason", "All is decided.");
    const [, closingId = ""] = /Closing (\d+) has 4 lines and 4 issues\./.exec(closed.text) ?? [closed.text];
    const file = join(folder.path, "closing.ndjson");
    const exported = await command("recon", "period", "export", closingId, "--file", file);
    expect(exported.text).toMatch(/has \d+ rows/);
    const { keys } = await operator.good<{ keys: { public_key: string }[] }>("GET", "closing-keys/");
    const verified = runProgram(process.execPath, [
      join(CLIENTS, "verify-closing.mjs"),
      file,
      "--key",
      keys[0]?.public_key ?? "",
    ]);
    expect(await verified.ended, verified.output()).toBe(0);
    const again = await command("recon", "period", "export", closingId, "--file", file);
    expect(again).toMatchObject({ code: 1, text: expect.stringContaining("does not exist yet") as string });
    const filial = String(system.sandbox.filialId);
    const report = await command("recon", "report", "--filial", filial, "--day", "2026-11-01", "--mode", "test");
    expect(report).toMatchObject({
      code: 0,
      text: expect.stringMatching(/time zone UTC:.*(settled|Nothing)/s) as string,
    });
    const inZone = ["--filial", filial, "--day", "2026-11-01", "--time-zone", "Europe/Berlin"];
    const there = await command("recon", "report", ...inZone);
    expect(there).toMatchObject({
      code: 0,
      text: expect.stringContaining("in the time zone Europe/Berlin:") as string,
    });
  });
});

test("accounts, with more than one page: lists all", async () => {
  const sql = openDatabase({ url: system.database.url, name: "accounts", maxConnections: 1 });
  await sql`
    insert into statement_accounts (organization_id, provider, reference, name, currency, mode)
    select organization_id, 'sandbox', 'many-' || nth, 'Bar', 'EUR', 'test'
    from users, generate_series(1, 101) as nth where email = ${system.owner.email}`;
  await closeDatabase(sql);
  const { printed } = await command("statement", "accounts");
  expect(printed.match(/\tmany-\d+\t/g)).toHaveLength(101);
});

const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? "";
