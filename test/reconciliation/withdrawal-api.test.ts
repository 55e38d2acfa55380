/** From the upload of a file to its withdrawal and its second import, by two operators, through the whole system. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, send } from "../support/http.ts";
import { addOperator, logIn, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

const API = "/api/reconciliation/v1/";
const SAMPLES = join(import.meta.dirname, "samples");
const OFF_BALANCE = readFileSync(join(SAMPLES, "adyen/off-balance.csv"));
const SOON = { timeout: 20_000, interval: 100 };
const REASON = "The file of another restaurant.";

interface Import {
  readonly import_id: number;
  readonly status: string;
  readonly lines_new: number;
  readonly mapping_id: number | null;
  readonly released: object | null;
  readonly withdrawn: object | null;
}
interface Issue {
  readonly issue_id: number;
  readonly kind: string;
  readonly status: string;
  readonly amount: string;
  readonly reason: string | null;
  readonly assignee_id: number | null;
}
interface Refused {
  readonly code?: string;
  readonly reason?: string;
}

let system: TestSystem;
let rita: Person;
let otto: Person;

beforeAll(async () => {
  system = await sharedSystem();
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  rita = await addOperator(system.baseUrl, owner, "rita@sandbox.example", "rita");
  otto = await addOperator(system.baseUrl, owner, "otto@sandbox.example", "otto");
});
afterAll(() => system.stop());

async function addAccount(): Promise<number> {
  const body = { provider: "sandbox", reference: `acct-${randomUUID()}`, name: "Bar", mode: "test", currency: "EUR" };
  return (await rita.good<{ account_id: number }>("POST", "accounts/", { body })).account_id;
}

async function upload(accountId: number, content: Uint8Array | string, declared = ""): Promise<Answer<Import>> {
  const path = `${API}accounts/${accountId}/imports/?file_name=statement.csv${declared}`;
  const headers = { "content-type": "application/octet-stream" };
  const answer = await send<Import>(system.baseUrl, "POST", path, { token: rita.token, body: content, headers });
  expect([200, 201], answer.text).toContain(answer.status);
  return answer;
}
const SANDBOX = "&format=sandbox&encoding=utf-8";
/** A statement whose lines have no payment. */
const statement = (amounts: readonly string[], seed = randomUUID()): string =>
  [
    "line,payment_id,reference,account,amount,currency,paid_at",
    ...amounts.map(
      (amount, index) => `${index + 1},${seed}-${index},int-${seed}-${index},,${amount},EUR,2026-11-01T10:00:00.000Z`,
    ),
    "",
  ].join("\n");

const importOf = (importId: number): Promise<Import> => rita.good<Import>("GET", `imports/${importId}/`);
const until = (importId: number, status: string): Promise<Import> =>
  expect
    .poll(() => importOf(importId), SOON)
    .toMatchObject({ status })
    .then(() => importOf(importId));
const decide = (what: "release" | "withdraw", importId: number, { by = rita, reason = REASON } = {}) =>
  by.call<Refused>("POST", `imports/${importId}/${what}/`, { body: { reason } });

async function issuesOf(accountId: number): Promise<readonly Issue[]> {
  const { issues } = await rita.good<{ issues: Issue[] }>("GET", `issues/?account=statement:${accountId}`);
  return issues.toSorted((a, b) => a.issue_id - b.issue_id);
}

describe("a file whose totals do not add up", () => {
  test("is held, and imported by a release, which names the person and the reason", async () => {
    const { body } = await upload(await addAccount(), OFF_BALANCE, "&format=adyen_settlement_details&encoding=utf-8");
    expect(await until(body.import_id, "held")).toMatchObject({ lines_new: 0, released: null });
    const reason = "The provider sends the correction with the next batch.";
    expect(await decide("release", body.import_id, { reason })).toMatchObject({ status: 200 });
    const imported = await until(body.import_id, "imported");
    expect(imported.lines_new).toBeGreaterThan(0);
    expect(imported.released).toMatchObject({ by: rita.userId, reason });
  });
});

describe("a file with an unknown header", () => {
  test("is previewed, its mapping is stored, and it is imported with that version", async () => {
    const accountId = await addAccount();
    const { body } = await upload(accountId, "When;What;How much\n03.11.2026;Sale;1.234,50\n04.11.2026;Tip jar;x\n");
    expect(body.status).toBe("needs_format");
    const definition = {
      encoding: "utf-8",
      delimiter: ";",
      header_row: 1,
      decimal_separator: ",",
      thousands_separator: ".",
      currency: { fixed: "EUR" },
      amount: { rule: "signed", column: "How much", money_in: "positive" },
      date_formats: ["DD.MM.YYYY"],
      booked_on: { column: "When" },
      kind: { column: "What", words: { Sale: "payment" }, default: "adjustment" },
    };
    const { import_id } = body;
    const preview = await rita.good("POST", "statement-mappings/preview/", { body: { import_id, definition } });
    expect(preview).toMatchObject({ rows: [{ outcome: "line" }, { outcome: "malformed" }] });
    const stored = { name: "Bar", definition };
    const { mapping_id } = await rita.good<{ mapping_id: number }>("POST", "statement-mappings/", { body: stored });
    await rita.good("POST", `imports/${import_id}/confirm/`, { body: { mapping_id } });
    expect(await until(import_id, "imported")).toMatchObject({ mapping_id, lines_new: 1, malformed: 1 });
    expect(await rita.good("GET", `imports/${import_id}/lines/`)).toMatchObject({
      lines: [{ position: 2, amount: "1234.50", booked_on: "2026-11-03", sources: [{ import_id, position: 2 }] }],
    });
    expect(await rita.good("GET", `malformed-rows/?import_id=${import_id}`)).toMatchObject({
      malformed_rows: [{ import_id, position: 3, column: "How much" }],
    });
  });
});

test("a withdrawn file: its issues end with the reason, and the decisions return when the file is imported again", async () => {
  const accountId = await addAccount();
  const content = statement(["12.50", "9.90", "7.00"]);
  const { body } = await upload(accountId, content, SANDBOX);
  await until(body.import_id, "imported");
  const statuses = async () => (await issuesOf(accountId)).map(({ status }) => status);
  await expect.poll(statuses, SOON).toEqual(["open", "open", "open"]);
  const [first, second] = await issuesOf(accountId);
  await rita.good("POST", `issues/${first?.issue_id}/close/`, { body: { reason: "Paid back." } });
  await rita.good("POST", `issues/${second?.issue_id}/assign/`, { body: { assignee_id: otto.userId } });
  const decided = await issuesOf(accountId);

  expect(await decide("withdraw", body.import_id)).toMatchObject({ status: 200 });
  const withdrawn = await until(body.import_id, "withdrawn");
  expect(withdrawn.withdrawn).toMatchObject({ by: rita.userId, reason: REASON });
  expect(await issuesOf(accountId)).toMatchObject([
    { status: "closed", reason: "Paid back." },
    { status: "ended", reason: REASON },
    { status: "ended", reason: REASON },
  ]);
  expect(await rita.good("GET", `lines/?account_id=${accountId}`)).toMatchObject({ lines: [] });

  const again = await upload(accountId, content, SANDBOX);
  expect(again).toMatchObject({ status: 201 });
  expect(again.body.import_id).not.toBe(body.import_id);
  await expect.poll(statuses, SOON).toEqual(["closed", "assigned", "open"]);
  const kept = ({ issue_id, status, amount, reason, assignee_id }: Issue) => ({
    issue_id,
    status,
    amount,
    reason,
    assignee_id,
  });
  expect((await issuesOf(accountId)).map(kept)).toEqual(decided.map(kept));
});

describe("two operators at once", () => {
  const CONFLICT = /^import_(?:waiting|importing|imported|withdrawing|withdrawn)$/;
  /** Each answer: `done`, or the stable code and the reason of its refusal. */
  function codes(answers: readonly Answer<Refused>[]): readonly string[] {
    return answers.map(({ status, body }) => (status === 200 ? "done" : `${body.code} ${body.reason ?? ""}`));
  }

  test("confirm and withdraw the same file: the withdrawal is effective, and no line of the file stays", async () => {
    const accountId = await addAccount();
    for (let round = 0; round < 6; round += 1) {
      const { body } = await upload(accountId, statement(["1.00"]));
      const confirmation = { body: { format: "sandbox", encoding: "utf-8" } };
      const answers = await Promise.all([
        otto.call<Refused>("POST", `imports/${body.import_id}/confirm/`, confirmation),
        decide("withdraw", body.import_id),
      ]);
      const [confirmed, withdrawn] = codes(answers);
      expect(withdrawn).toBe("done");
      if (confirmed !== "done") expect(confirmed).toMatch(/^conflict import_withdraw(?:ing|n)$/);
      await until(body.import_id, "withdrawn");
    }
    expect(await rita.good("GET", `lines/?account_id=${accountId}`)).toMatchObject({ lines: [] });
  });

  test("withdraw the same file for two reasons: one reason is stored", async () => {
    const { body } = await upload(await addAccount(), statement(["1.00", "2.00"]), SANDBOX);
    const answers = codes(
      await Promise.all([decide("withdraw", body.import_id), decide("withdraw", body.import_id, { by: otto })]),
    );
    expect(answers.filter((answer) => answer === "done")).toHaveLength(1);
    expect(answers.find((answer) => answer !== "done")).toMatch(/^conflict import_withdraw(?:ing|n)$/);
    await until(body.import_id, "withdrawn");
  });

  test("release and withdraw a held file: it ends withdrawn, and the release is done or refused by its status", async () => {
    const { body } = await upload(await addAccount(), OFF_BALANCE, "&format=adyen_settlement_details&encoding=utf-8");
    await until(body.import_id, "held");
    const [released, withdrawn] = codes(
      await Promise.all([decide("release", body.import_id, { by: otto }), decide("withdraw", body.import_id)]),
    );
    expect(withdrawn).toMatch(/^(?:done|busy )$/);
    if (released !== "done") expect(released?.split(" ")[1]).toMatch(CONFLICT);
    await decide("withdraw", body.import_id);
    await until(body.import_id, "withdrawn");
  });
});
