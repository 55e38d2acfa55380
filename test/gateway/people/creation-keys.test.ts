/** A creation with an Idempotency-Key happens once: repeated clicks, a lost answer and a retry create nothing more (I6). */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { creationHeaderSchema } from "../../../gateway/http/command-id.ts";
import { routes } from "../../../gateway/routes.ts";
import { deleteOldCreations } from "../../../services/db/creations.ts";
import { closeDatabase, openDatabase } from "../../../services/db/pool.ts";
import type { ApiClient } from "../../support/api-client.ts";
import { addFleet, type TestFleet } from "../../support/fleets.ts";
import { logIn, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

let system: TestSystem;
let sql: postgres.Sql;
let owner: Person;
let second: Person;
let operator: Person;
let station: { filial_id: number; station_id: number };
let fleet: TestFleet;
let issueId: number;

beforeAll(async () => {
  system = await sharedSystem({ sandboxProvider: true });
  sql = postgres(system.database.url, { max: 1 });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  const password = "a long enough password";
  for (const role of ["owner", "reconciliation_operator"]) {
    await owner.good("POST", "users/", { body: { email: `${role}@keys.example`, password, name: "Kim", role } });
  }
  second = await logIn(system.baseUrl, "backoffice", { email: "owner@keys.example", password });
  const rita = { email: "reconciliation_operator@keys.example", password };
  operator = await logIn(system.baseUrl, "reconciliation", rita);
  station = { filial_id: system.sandbox.filialId, station_id: system.sandbox.stations[0]?.stationId ?? 0 };
  fleet = await addFleet(system.baseUrl, owner, station.filial_id);
  const [issue] = await sql<[{ issue_id: string }]>`
    insert into issues (organization_id, account_key, kind, subject_key, evidence, evidence_hash)
    select organization_id, 'provider:1', 'unmatched_money', 'keys', '{}'::jsonb, sha256('keys')
    from stations where station_id = ${station.station_id} returning issue_id`;
  issueId = Number(issue.issue_id);
});
afterAll(async () => {
  await sql.end();
  await system.stop();
});

interface Creation {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The fields in which another request with the same key differs from the first one. */
  readonly other: object;
  readonly by?: () => ApiClient;
  /** Counts the objects that exist. */
  readonly count: () => Promise<number>;
  /** The answer contains a secret, which the service shows once. */
  readonly isShownOnce?: true;
}

const rows =
  (table: string, where = "true") =>
  async (): Promise<number> => {
    const [{ count }] = await sql<[{ count: string }]>`select count(*) from ${sql(table)} where ${sql.unsafe(where)}`;
    return Number(count);
  };

const creations: Readonly<Record<string, () => Creation>> = {
  backoffice_create_filial: () => ({
    path: "filials/",
    body: { name: "Harbour" },
    other: { name: "Old Town" },
    count: rows("filials"),
  }),
  backoffice_create_station: () => ({
    path: "stations/",
    body: { filial_id: station.filial_id, name: "Bar", currency: "EUR" },
    other: { name: "Terrace" },
    count: rows("stations"),
  }),
  backoffice_register_device: () => ({
    path: "devices/",
    body: { station_id: station.station_id, name: "Display", kind: "customer_display" },
    other: { kind: "smart_pos_companion" },
    count: rows("devices"),
  }),
  backoffice_create_catalogue_item: () => ({
    path: "catalogue-items/",
    body: { filial_id: null, name: "Soup", category: "", unit_amount: "5.00", currency: "EUR" },
    other: { unit_amount: "6.00" },
    count: rows("catalogue_items"),
  }),
  backoffice_create_robotics_consumer: () => ({
    path: "robotics-consumers/",
    body: { filial_id: station.filial_id, name: "Robots", mode: "test" },
    other: { name: "Drones" },
    count: rows("robotics_consumers"),
    isShownOnce: true,
  }),
  backoffice_register_webhook_endpoint: () => ({
    path: "webhook-endpoints/",
    body: { consumer_id: fleet.consumerId, url: "https://127.0.0.1:8443/first" },
    other: { url: "https://127.0.0.1:8443/second" },
    count: rows("webhook_endpoints"),
    isShownOnce: true,
  }),
  backoffice_seed_sandbox: () => ({
    path: "sandboxes/",
    body: { filial_id: station.filial_id, name: "Try", currency: "EUR" },
    other: { currency: "CHF" },
    count: rows("sandboxes"),
    isShownOnce: true,
  }),
  reconciliation_comment_issue: () => ({
    path: `issues/${issueId}/comments/`,
    body: { text: "The bank looks for it." },
    other: { text: "It has come." },
    by: () => operator,
    count: rows("issue_comments"),
  }),
};

describe("a creation with an Idempotency-Key", () => {
  it("`creations`: has each operation that creates something with a key", () => {
    const keyed = routes
      .filter(({ headers }) => headers === creationHeaderSchema)
      .map(({ operationId }) => operationId);
    expect(Object.keys(creations).toSorted()).toEqual(keyed.toSorted());
  });

  it.each(Object.entries(creations))("%s, sent several times at once: creates one object", async (operationId, of) => {
    const { path, body, other, by = () => owner, count, isShownOnce } = of();
    const key = `made-${operationId}`;
    const before = await count();
    const send = () => by().call("POST", path, { body, key });
    const answers = await Promise.all([send(), send(), send()]);
    answers.push(await send());
    expect(await count()).toBe(before + 1);
    const made = answers.filter(({ status }) => status === 201);
    if (isShownOnce) {
      expect(made).toHaveLength(1);
      expect(answers.map((answer) => answer.body["code"]).filter(Boolean)).toEqual(Array(3).fill("already_created"));
    } else {
      expect(made).toHaveLength(4);
      for (const answer of made) expect(answer.body).toEqual(made[0]?.body);
    }
    const changed = { body: { ...body, ...other }, key };
    expect((await by().refused("idempotency_key_reused", "POST", path, changed)).status).toBe(422);
    expect(await count()).toBe(before + 1);
    // Without a key, and with another key, the request creates another object.
    expect((await by().call("POST", path, { body })).status).toBe(201);
    expect((await by().call("POST", path, { body, key: `${key}-2` })).status).toBe(201);
    expect(await count()).toBe(before + 3);
    const route = routes.find((each) => each.operationId === operationId);
    expect(route?.errors).toContain("idempotency_key_reused");
    expect(route?.errors?.includes("already_created")).toBe(isShownOnce === true);
  });

  it("a key whose first request was refused: a corrected request with this key succeeds", async () => {
    const key = "refused-first";
    await owner.refused("invalid_request", "POST", "stations/", { body: { ...station, name: "Bar" }, key });
    await owner.refused("not_found", "POST", "catalogue-items/", {
      body: { filial_id: 999_999, name: "Soup", category: "", unit_amount: "5.00", currency: "EUR" },
      key,
    });
    const known = { filial_id: station.filial_id, name: "Soup", category: "", unit_amount: "5.00", currency: "EUR" };
    await owner.good("POST", "catalogue-items/", { body: known, key });
  });

  it("a key that another person has used: creates another object", async () => {
    const sending = { body: { name: "Twice" }, key: "of-a-person" };
    const first = await owner.good("POST", "filials/", sending);
    expect(await second.good("POST", "filials/", sending)).not.toEqual(first);
  });

  it("repeated after the object has changed: the object as it is now; after its deletion: not found", async () => {
    const body = { filial_id: null, name: "Tea", category: "", unit_amount: "2.00", currency: "EUR" };
    const sending = { body, key: "changed-since" };
    const { item_id } = await owner.good<{ item_id: number }>("POST", "catalogue-items/", sending);
    await owner.good("PATCH", `catalogue-items/${item_id}/`, { body: { name: "Mint tea" } });
    expect(await owner.good("POST", "catalogue-items/", sending)).toMatchObject({ item_id, name: "Mint tea" });
    await owner.good("DELETE", `catalogue-items/${item_id}/`);
    await owner.refused("not_found", "POST", "catalogue-items/", sending);
  });

  it("keys past their retention: deleted", async () => {
    await sql`update creations set created_at = now() - interval '31 days' where made_id % 2 = 0`;
    const database = openDatabase({ url: system.database.url, maxConnections: 1 });
    const left = rows("creations", "created_at < now() - interval '30 days'");
    expect(await left()).toBeGreaterThan(0);
    while ((await deleteOldCreations(database, { olderThanDays: 30, rows: 2 })) > 0);
    expect(await left()).toBe(0);
    expect(await rows("creations")()).toBeGreaterThan(0);
    await closeDatabase(database);
  });
});
