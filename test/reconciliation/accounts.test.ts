/** Statement accounts through a real gateway and a real service. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { send } from "../support/http.ts";
import { addOperator, logIn, type Person } from "../support/people.ts";
import { addOrganization } from "../support/second-organization.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

const PATH = "/api/reconciliation/v1/accounts/";

interface Account {
  readonly account_id: number;
  readonly name: string;
}

let system: TestSystem;
let operator: Person;
let stranger: Person;

beforeAll(async () => {
  system = await sharedSystem();
  operator = await addOperator(system.baseUrl, await logIn(system.baseUrl, "backoffice", system.owner));
  const elsewhere = await logIn(system.baseUrl, "backoffice", (await addOrganization(system)).owner);
  stranger = await addOperator(system.baseUrl, elsewhere, "rita@elsewhere.example");
});
afterAll(() => system.stop());

let references = 0;
const nextReference = (): string => {
  references += 1;
  return `M-${references}`;
};
const facts = (more: object = {}) => ({
  provider: "sumup",
  reference: nextReference(),
  name: "Bar",
  mode: "test",
  ...more,
});
const create = (more: object = {}) => operator.good<Account>("POST", "accounts/", { body: facts(more) });
/** The answer of a request that may be refused. */
const ask = (method: "POST" | "PATCH" | "GET", path: string, options: { body?: object; by?: Person } = {}) =>
  send<{ code?: string; errors?: { pointer: string }[] }>(system.baseUrl, method, path, {
    ...(options.body === undefined ? {} : { json: options.body }),
    token: (options.by ?? operator).token,
  });

describe("a statement account", () => {
  test("creation: omitted fields are null or have their default, and list and read show the same", async () => {
    const account = await create({ filial_id: system.sandbox.filialId, currency: "EUR" });
    expect(account).toMatchObject({ provider: "sumup", config_id: null, settlement_delay_days: 3, time_zone: null });
    const { statement_accounts: listed } = await operator.good<{ statement_accounts: Account[] }>("GET", "accounts/");
    expect(listed).toContainEqual(account);
    expect(await operator.good("GET", `accounts/${account.account_id}/`)).toEqual(account);
  });

  test("a creation of an account that exists: refused, unless the mode differs", async () => {
    const body = facts();
    await operator.good("POST", "accounts/", { body });
    expect(await ask("POST", PATH, { body })).toMatchObject({ status: 409, body: { code: "conflict" } });
    expect(await ask("POST", PATH, { body: { ...body, mode: "live" } })).toMatchObject({ status: 201 });
  });

  test("an unknown currency or time zone: refused, with an error for each field", async () => {
    for (const time_zone of ["Mars/Olympus", "+02:00", "+0200"]) {
      const answer = await ask("POST", PATH, { body: facts({ currency: "XQX", time_zone }) });
      expect(answer, time_zone).toMatchObject({ status: 400, body: { code: "invalid_request" } });
      expect(answer.body.errors?.map(({ pointer }) => pointer)).toEqual(["/currency", "/time_zone"]);
    }
  });

  test("another spelling of a time zone: stored by its canonical name", async () => {
    const account = await create({ time_zone: "europe/berlin" });
    expect(account).toMatchObject({ time_zone: "Europe/Berlin" });
    const path = `accounts/${account.account_id}/`;
    for (const [time_zone, canonical] of [
      ["CET", "Europe/Brussels"],
      ["utc", "UTC"],
      [null, null],
    ] as const) {
      const changed = await operator.good("PATCH", path, { body: { time_zone } });
      expect(changed).toMatchObject({ time_zone: canonical });
    }
  });

  test("a change: accepted for fields that do not identify the account, refused for the others", async () => {
    const { account_id } = await create();
    const body = { name: "Terrace", settlement_delay_days: 5, time_zone: "Europe/Berlin" };
    expect(await operator.good("PATCH", `accounts/${account_id}/`, { body })).toMatchObject(body);
    expect(await ask("PATCH", `${PATH}${account_id}/`, { body: { provider: "adyen" } })).toMatchObject({ status: 400 });
  });

  test("a last day: later days have no period and cannot be closed, until the last day is removed", async () => {
    const { account_id } = await create();
    const path = `accounts/${account_id}/`;
    const query = `periods/?kind=day&account_id=${account_id}&from_date=2026-03-14&to_date=2026-03-17`;
    const days = async () =>
      (await operator.good<{ periods: { from_date: string }[] }>("GET", query)).periods.map(
        ({ from_date }) => from_date,
      );
    const last = { last_day: "2026-03-15" };
    expect(await operator.good("PATCH", path, { body: last })).toMatchObject(last);
    expect(await days()).toEqual(["2026-03-14", "2026-03-15"]);
    const close = { body: { account_id, kind: "day", from_date: "2026-03-16", reason: "All decided" } };
    const refusal = await ask("POST", "/api/reconciliation/v1/periods/close/", close);
    expect(refusal).toMatchObject({ status: 409, body: { reason: "period_not_ready" } });
    expect(await ask("PATCH", `${PATH}${account_id}/`, { body: { last_day: "2026-02-30" } })).toMatchObject({
      status: 400,
    });
    expect(await operator.good("PATCH", path, { body: { last_day: null } })).toMatchObject({ last_day: null });
    expect(await days()).toHaveLength(4);
  });

  test("another organization's account: not found, and its filial cannot be named", async () => {
    const { account_id } = await create();
    for (const [method, body] of [["GET"], ["PATCH", { name: "Theirs" }]] as const) {
      const answer = await ask(method, `${PATH}${account_id}/`, {
        by: stranger,
        ...(body === undefined ? {} : { body }),
      });
      expect(answer).toMatchObject({ status: 404, body: { code: "not_found" } });
    }
    const theirs = facts({ filial_id: system.sandbox.filialId });
    expect(await ask("POST", PATH, { by: stranger, body: theirs })).toMatchObject({ status: 404 });
    expect(await stranger.good("GET", "accounts/")).toMatchObject({ statement_accounts: [] });
  });
});
