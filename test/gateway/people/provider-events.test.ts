/** The owner's audit log of payment providers over HTTP: who changed which config, who settled which payment, and why. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postCallback } from "../../providers/emvco-callback.ts";
import { emvcoSettings } from "../../support/emvco-settings.ts";
import { send } from "../../support/http.ts";
import { addOperator, logIn, newOrder, type Person } from "../../support/people.ts";
import { addOrganization } from "../../support/second-organization.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

interface Event {
  readonly event_id: number;
  readonly at: string;
  readonly actor: { readonly kind: string; readonly id: number; readonly name: string };
  readonly action: string;
  readonly subject: { readonly kind: string; readonly id: number };
  readonly data: Record<string, unknown>;
}
interface Page {
  readonly events: readonly Event[];
  readonly has_more: boolean;
}

const SECRET = "a-secret-that-is-never-shown-again";
const SETTINGS = emvcoSettings();

let system: TestSystem;
let owner: Person;
let operator: Person;
let configId: number;
let filialId: number;
beforeAll(async () => {
  system = await sharedSystem({ sandboxProvider: true });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  operator = await addOperator(system.baseUrl, owner);
  const { filial_id } = await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name: "Harbour" } });
  filialId = filial_id;
  const facts = { filial_id, kind: "emvco_generic", mode: "test", name: "Acquirer", settings: SETTINGS };
  const body = { ...facts, secrets: { callback_secret: SECRET }, reason: "The contract of 2026-11-01." };
  const made = await owner.good<{ provider_config: { config_id: number } }>("POST", "provider-configs/", { body });
  configId = made.provider_config.config_id;
});
afterAll(() => system.stop());

const page = (person: Person, query = "") => person.good<Page>("GET", `provider-events/${query}`);
const newestId = async (): Promise<number> => (await page(owner, "?limit=1")).events[0]?.event_id ?? 0;
const whoIs = ({ userId: id, name }: Person, kind: string) => ({ kind, id, name });

async function sendUnmatchedPayment(transaction_id: string): Promise<number> {
  const data = { reference: "unknown", transaction_id, merchant_id: "M-1", amount: "12.50", currency: "EUR" };
  const body = JSON.stringify({ id: transaction_id, type: "payment.paid", data });
  expect((await postCallback(system.baseUrl, { configId, body, secret: SECRET })).status).toBe(200);
  const { issues } = await operator.good<{ issues: { issue_id: number }[] }>("GET", "issues/?limit=1");
  return issues[0]?.issue_id ?? 0;
}

describe("the audit log of payment providers", () => {
  it("a config that is added, changed, disabled, or gets a new secret: who, when and why, and never the secret", async () => {
    const sinceId = await newestId();
    const startedAt = Date.now();
    const config = `provider-configs/${configId}/`;
    await owner.good("PATCH", config, { body: { name: "Acquirer II" } });
    await owner.good("PATCH", config, { body: { name: "Acquirer II", reason: "changes nothing" } });
    const renewed = { name: "callback_secret", secret: `${SECRET}-2`, overlap_seconds: 600, reason: "It was leaked." };
    await owner.good("POST", `${config}rotate/`, { body: renewed });
    await owner.good("PATCH", config, { body: { status: "disabled", reason: "The contract has ended." } });
    await owner.good("PATCH", config, { body: { status: "active" } });
    const { events, has_more } = await page(owner, `?since_id=${sinceId}`);
    expect(has_more).toBe(false);
    const shared = { actor: whoIs(owner, "owner"), subject: { kind: "provider_config", id: configId } };
    const changed = { ...shared, action: "provider_config_changed" };
    expect(events.map(({ event_id: _id, at: _at, ...rest }) => rest)).toEqual([
      { ...changed, data: { name: { from: "Acquirer", to: "Acquirer II" } } },
      {
        ...shared,
        action: "provider_secret_rotated",
        data: { name: "callback_secret", overlap_ms: 600_000, reason: "It was leaked." },
      },
      { ...changed, data: { status: { from: "active", to: "disabled" }, reason: "The contract has ended." } },
      { ...changed, data: { status: { from: "disabled", to: "active" } } },
    ]);
    for (const { at } of events) expect(Date.parse(at)).toBeGreaterThanOrEqual(startedAt - 1);
    const whole = await page(owner, "?limit=500");
    expect(whole.events.find(({ action }) => action === "provider_config_created")).toMatchObject({
      ...shared,
      data: { name: "Acquirer", mode: "test", reason: "The contract of 2026-11-01." },
    });
    expect(JSON.stringify(whole)).not.toContain(SECRET);
  });

  it("the sandbox's config: its entry names the operator, not the owner", async () => {
    const { events } = await page(owner, "?since_id=0&limit=1");
    expect(events[0]).toMatchObject({
      actor: { kind: "platform", id: 0, name: "operator" },
      action: "provider_config_created",
      data: { kind: "sandbox", mode: "test" },
    });
  });

  it("a closed issue of an unmatched payment: who closed it, and why", async () => {
    const issueId = await sendUnmatchedPayment("T-1");
    await operator.good("POST", `issues/${issueId}/close/`, { body: { reason: "Paid back by bank transfer." } });
    expect((await page(owner, "?limit=1")).events).toMatchObject([
      {
        actor: whoIs(operator, "reconciliation_operator"),
        action: "issue_closed",
        subject: { kind: "issue", id: issueId },
        data: { kind: "unmatched_money", reason: "Paid back by bank transfer." },
      },
    ]);
  });

  it("an attributed payment: its transaction, order, operator and reason", async () => {
    const issueId = await sendUnmatchedPayment("T-2");
    const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
    // A payment settles at the filial of the provider's account.
    const counter = { filial_id: filialId, name: "Pier", currency: "EUR" };
    const { station_id } = await owner.good<{ station_id: number }>("POST", "stations/", { body: counter });
    const order_id = await newOrder(cashier, `stations/${station_id}`, "12.50");
    const { transaction_id } = await operator.good<{ transaction_id: number }>("POST", `issues/${issueId}/attribute/`, {
      body: { order_id, reason: "The guest showed the receipt." },
    });
    expect((await page(owner, "?limit=1")).events).toMatchObject([
      {
        actor: whoIs(operator, "reconciliation_operator"),
        action: "issue_attributed",
        subject: { kind: "issue", id: issueId },
        data: { kind: "unmatched_money", order_id, transaction_id, reason: "The guest showed the receipt." },
      },
    ]);
  });

  it("a freeze of a provider: in the audit log with the other kill switches, with person and reason", async () => {
    const before = await newestId();
    for (const [way, reason] of [
      ["freeze", "Their callbacks seem forged."],
      ["unfreeze", "They have explained."],
    ])
      await owner.good("POST", `provider-configs/${configId}/${way}/`, { body: { reason } });
    const { events } = await owner.good<Page>("GET", "events/?since_id=0&limit=500");
    const shared = { actor: whoIs(owner, "owner"), subject: { kind: "provider_config", id: configId } };
    expect(events.slice(-2)).toMatchObject([
      { ...shared, action: "provider_frozen", data: { reason: "Their callbacks seem forged." } },
      { ...shared, action: "provider_unfrozen", data: { reason: "They have explained." } },
    ]);
    expect(await newestId()).toBe(before);
  });

  it("pages in both directions: each event once and in order", async () => {
    const { events: whole, has_more } = await page(owner, "?limit=500");
    expect(has_more).toBe(false);
    expect(whole.length).toBeGreaterThan(4);
    const backwards = await all((last) => (last === undefined ? "" : `&before_id=${last}`));
    expect(backwards).toEqual(whole);
    const forwards = await all((last) => `&since_id=${last ?? 0}`);
    expect(forwards).toEqual(whole.toReversed());
    const ids = forwards.map(({ event_id }) => event_id);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect(await page(owner, `?since_id=${ids.at(-1)}`)).toEqual({ events: [], has_more: false, through_id: null });
    expect(await page(owner, `?before_id=${ids[0]}`)).toEqual({ events: [], has_more: false, through_id: null });
  });

  async function all(cursor: (last: number | undefined) => string): Promise<Event[]> {
    const read: Event[] = [];
    for (let more = true; more; ) {
      const { events, has_more } = await page(owner, `?limit=2${cursor(read.at(-1)?.event_id)}`);
      expect(events.length).toBeLessThanOrEqual(2);
      read.push(...events);
      more = has_more;
    }
    return read;
  }

  it("a page that is too long, without a number, or in both directions at once: refused", async () => {
    for (const query of ["?limit=501", "?before_id=0", "?before_id=", "?since_id=1e2", "?since_id=1&before_id=5"])
      await owner.refused("invalid_request", "GET", `provider-events/${query}`);
  });

  it("a change with an invalid reason: refused", async () => {
    for (const reason of ["", "  ", "x".repeat(501), 1])
      await owner.refused("invalid_request", "PATCH", `provider-configs/${configId}/`, { body: { reason } });
  });

  it("readers: only the owner, and not an owner of another organization", async () => {
    for (const [api, details] of [
      ["cashier", system.cashier],
      ["reconciliation", { email: "rita@sandbox.example", password: "a long enough password" }],
    ] as const) {
      const { token } = await logIn(system.baseUrl, api, details);
      expect(await send(system.baseUrl, "GET", "/api/backoffice/v1/provider-events/", { token })).toMatchObject({
        status: 403,
        body: { code: "permission_denied" },
      });
    }
    const stranger = await logIn(system.baseUrl, "backoffice", (await addOrganization(system)).owner);
    expect(await page(stranger)).toEqual({ events: [], has_more: false, through_id: null });
    expect(await page(stranger, "?since_id=0")).toEqual({ events: [], has_more: false, through_id: null });
  });
});
