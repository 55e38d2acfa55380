/** Every route for people and for the platform: who may not call it, and that no caller reaches another organization. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { routes } from "../../../gateway/routes.ts";
import { emvcoSettings } from "../../support/emvco-settings.ts";
import { addFleet, offerBody, offerTask } from "../../support/fleets.ts";
import { send } from "../../support/http.ts";
import { logIn, type Person } from "../../support/people.ts";
import { addOrganization } from "../../support/second-organization.ts";
import { PLATFORM_KEY, sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

const guarded = routes.filter(({ who }) => who.kind === "session");
const peopleRoutes = guarded.filter(({ tag }) => tag === "cashier" || tag === "backoffice");

/** Selected by path, so that a route whose check of the platform key is missing is also found. */
const platformRoutes = routes.filter(({ path }) => path.startsWith("/api/platform/"));

const FREEZES = ["organization", "station", "device", "provider"].flatMap((what) => [
  `backoffice_freeze_${what}`,
  `backoffice_unfreeze_${what}`,
]);

let system: TestSystem;
let owner: Person;
let cashier: Person;
/** An owner and a cashier of another organization. */
let strangers: Readonly<Record<"cashier" | "backoffice", Person>>;
/** The ids of objects of the first organization, by the name of the path's parameter. */
let ids: Readonly<Record<string, number>>;
/** For each operation, a body that a person of the first organization could send. */
let bodies: Readonly<Record<string, unknown>>;

beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const elsewhere = await addOrganization(system);
  const strangeOwner = await logIn(system.baseUrl, "backoffice", elsewhere.owner);
  const details = { email: "carl@elsewhere.example", password: "a long enough password" };
  await strangeOwner.good("POST", "users/", { body: { ...details, name: "Carl", role: "cashier" } });
  strangers = { backoffice: strangeOwner, cashier: await logIn(system.baseUrl, "cashier", details) };

  const { filialId } = system.sandbox;
  const [station] = system.sandbox.stations;
  const station_id = station?.stationId ?? 0;
  const device_id = station?.devices[0]?.deviceId ?? 0;
  const lines = { lines: [{ name: "Soup", quantity: 1, unit_amount: "5.00" }] };
  await cashier.good("POST", `stations/${station_id}/lease/`);
  const order = await cashier.good<{ order_id: number }>("POST", `stations/${station_id}/orders/`, { body: lines });
  const body = { order_id: order.order_id, route: "cash" };
  const intent = await cashier.good<{ intent_id: number }>("POST", `stations/${station_id}/intents/`, { body });
  const provider = {
    kind: "emvco_generic",
    mode: "test",
    name: "Theirs",
    settings: emvcoSettings(),
  };
  const { provider_config } = await owner.good<{ provider_config: { config_id: number } }>(
    "POST",
    "provider-configs/",
    {
      body: { filial_id: filialId, ...provider },
    },
  );
  const item = { name: "Theirs", unit_amount: "3.00", currency: "EUR" };
  const { item_id } = await owner.good<{ item_id: number }>("POST", "catalogue-items/", { body: item });
  const sandboxBody = { filial_id: filialId, name: "Theirs", currency: "EUR" };
  const sandbox = await owner.good<{ sandbox_id: number }>("POST", "sandboxes/", { body: sandboxBody });
  const path = `devices/${device_id}/enrollment-codes/`;
  const { enrollment_code } = await owner.good<{ enrollment_code: { code_id: number } }>("POST", path);
  const fleet = await addFleet(system.baseUrl, owner, filialId);
  const consumer_id = fleet.consumerId;
  const hook = { consumer_id, url: "http://127.0.0.1:9/hook" };
  const { webhook_endpoint: endpoint } = await owner.good<{ webhook_endpoint: { endpoint_id: number } }>(
    "POST",
    "webhook-endpoints/",
    { body: hook },
  );
  const { task_id } = await offerTask(owner, fleet, { valid_for_seconds: 3_600 });
  ids = {
    organization_id: system.sandbox.organizationId,
    consumer_id,
    task_id,
    filial_id: filialId,
    endpoint_id: endpoint.endpoint_id,
    delivery_id: await firstDelivery(),
    station_id,
    device_id,
    order_id: order.order_id,
    intent_id: intent.intent_id,
    item_id,
    code_id: enrollment_code.code_id,
    user_id: cashier.userId,
    config_id: provider_config.config_id,
    sandbox_id: sandbox.sandbox_id,
    // The objects with these ids need not exist: the tests check only who may call the routes.
    issue_id: 1,
    account_id: 1,
    closing_id: 1,
    import_id: 1,
    mapping_id: 1,
    test_id: 1,
    run_id: 1,
    conformance_run_id: 1,
    artifact_id: 1,
  };
  bodies = {
    cashier_open_order: lines,
    cashier_change_order: lines,
    cashier_create_intent: body,
    backoffice_seed_sandbox: sandboxBody,
    backoffice_start_conformance_run: { sandbox_id: sandbox.sandbox_id },
    backoffice_record_certification: {
      sandbox_id: sandbox.sandbox_id,
      device_id: 1,
      provider: "Theirs",
      software_version: "1",
      suite_version: "1",
      suite_sha256: "ab".repeat(32),
      contract_sha256: "ab".repeat(32),
      checks: [],
      left_behind: [],
    },
    backoffice_revoke_certification_artifact: { reason: "Theirs" },
    backoffice_create_station: { filial_id: filialId, name: "Theirs", currency: "EUR" },
    backoffice_rename_station: { name: "Theirs" },
    backoffice_register_device: { station_id, name: "Theirs", kind: "customer_display" },
    backoffice_change_device: { name: "Theirs" },
    backoffice_create_catalogue_item: item,
    backoffice_change_catalogue_item: { name: "Changed" },
    backoffice_create_filial: { name: "Theirs" },
    backoffice_rename_filial: { name: "Theirs" },
    backoffice_change_user: { role: "owner" },
    backoffice_create_provider_config: { filial_id: filialId, ...provider },
    backoffice_change_provider_config: { name: "Theirs" },
    backoffice_set_attribution_limit: { currency: "EUR", alone_up_to: "1.00", reason: "theirs" },
    backoffice_rotate_provider_secret: { name: "callback_secret" },
    reconciliation_attribute_issue: { order_id: order.order_id, reason: "theirs" },
    reconciliation_propose_attribution: { order_id: order.order_id, reason: "theirs" },
    reconciliation_confirm_attribution: { proposal_id: 1 },
    reconciliation_reject_attribution: { proposal_id: 1, reason: "theirs" },
    reconciliation_withdraw_attribution: { proposal_id: 1 },
    reconciliation_close_issue: { reason: "theirs" },
    reconciliation_create_statement_account: { provider: "sumup", reference: "M-1", name: "Theirs", mode: "test" },
    reconciliation_change_statement_account: { name: "Theirs" },
    reconciliation_preview_statement_mapping: { import_id: 1, mapping_id: 1 },
    reconciliation_test_statement_mapping: { import_id: 1, mapping_id: 1 },
    reconciliation_release_import: { reason: "theirs" },
    reconciliation_withdraw_import: { reason: "theirs" },
    reconciliation_close_period: { account_id: 1, kind: "day", from_date: "2026-03-10", reason: "theirs" },
    reconciliation_start_run: { account_id: 1 },
    reconciliation_confirm_match: { line_ids: [1], payment_keys: ["transaction:1"], reason: "theirs" },
    reconciliation_reject_match: { line_id: 1, payment_key: "transaction:1", reason: "theirs" },
    reconciliation_change_password: { old_password: "x", new_password: "a long enough password" },
    backoffice_create_user: {
      email: "t@theirs.example",
      name: "T",
      role: "cashier",
      password: "a long enough password",
    },
    backoffice_create_robotics_consumer: { filial_id: filialId, name: "Theirs", mode: "live" },
    backoffice_change_robotics_consumer: { name: "Theirs" },
    backoffice_pause_filial_robotics: { reason: "Theirs" },
    backoffice_resume_filial_robotics: { reason: "Theirs" },
    backoffice_offer_serving_task: offerBody(consumer_id),
    backoffice_cancel_serving_task: { reason: "Theirs" },
    backoffice_register_webhook_endpoint: hook,
    backoffice_change_webhook_endpoint: { status: "paused" },
    backoffice_rotate_webhook_secret: {},
    backoffice_reset_user_password: { password: "a long enough password" },
    ...Object.fromEntries(FREEZES.map((operationId) => [operationId, { reason: "Theirs" }])),
    backoffice_change_password: { old_password: "x", new_password: "a long enough password" },
    cashier_change_password: { old_password: "x", new_password: "a long enough password" },
  };
});
afterAll(() => system.stop());

/** The delivery of the event about an offered task. It exists a moment after the offer, also before any answer to it. */
async function firstDelivery(): Promise<number> {
  const readEvent = async (): Promise<number> => {
    const path = "webhook-deliveries/";
    const found = await owner.good<{ webhook_deliveries: { delivery_id: number }[] }>("GET", path);
    const [first] = found.webhook_deliveries;
    if (first === undefined) throw new Error("The offer has no delivery.");
    return first.delivery_id;
  };
  return await vi.waitFor(readEvent, { timeout: 10_000, interval: 50 });
}

const pathOf = (path: string): string => path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(ids[name]));
const sending = (operationId: string, token?: string) => ({
  ...(bodies[operationId] === undefined ? {} : { json: bodies[operationId] }),
  ...(token === undefined ? {} : { token }),
});

/** An answer to an unknown token waits for a proof that the gateway's copy is the newest; calls at the same time share it. */
async function together(rows: typeof guarded, call: (row: (typeof guarded)[number]) => Promise<void>): Promise<void> {
  for (let begin = 0; begin < rows.length; begin += 20) await Promise.all(rows.slice(begin, begin + 20).map(call));
}

/** The data of the first organization, compared before and after strangers have called every route. */
async function inventory(): Promise<unknown> {
  const { station_id, order_id, intent_id, device_id } = ids;
  return Promise.all([
    owner.good("GET", "filials/"),
    owner.good("GET", "stations/"),
    owner.good("GET", "catalogue-items/"),
    owner.good("GET", "devices/"),
    owner.good("GET", "users/"),
    owner.good("GET", "provider-configs/"),
    owner.good("GET", "robotics-consumers/"),
    owner.good("GET", "serving-tasks/"),
    owner.good("GET", `filials/${ids["filial_id"]}/robotics/`),
    owner.good("GET", `devices/${device_id}/enrollment-codes/`),
    cashier.good("GET", `orders/${order_id}/`),
    cashier.good("GET", `stations/${station_id}/orders/`),
    cashier.good("GET", `stations/${station_id}/lease/`),
    cashier.good("GET", `stations/${station_id}/intents/${intent_id}/`),
  ]);
}

describe("every route for people", () => {
  it("`bodies`: has a body for each route that needs one", () => {
    expect(guarded.length).toBeGreaterThanOrEqual(35);
    for (const { operationId, body, bodyOptional } of peopleRoutes)
      if (body !== undefined && bodyOptional !== true) expect(bodies, operationId).toHaveProperty(operationId);
  });

  it("a call without a session: refused", async () => {
    await together(guarded, async ({ method, path, operationId }) => {
      const answer = await send(system.baseUrl, method, pathOf(path), sending(operationId));
      expect(answer, operationId).toMatchObject({ status: 401, body: { code: "session_missing" } });
    });
  });

  it("a call by a person without the route's permission, or by a device: refused", async () => {
    await together(guarded, async ({ method, path, operationId, who }) => {
      if (who.kind !== "session" || who.permission === null) return;
      const wrong = who.permission === "payments.collect" ? owner : cashier;
      const answer = await send(system.baseUrl, method, pathOf(path), sending(operationId, wrong.token));
      expect(answer, operationId).toMatchObject({ status: 403, body: { code: "permission_denied" } });
      const device = await send(system.baseUrl, method, pathOf(path), sending(operationId, "dp_00_not-a-session"));
      expect(device, operationId).toMatchObject({ status: 401, body: { code: "session_invalid" } });
    });
  });

  it("a call with another organization's id in the path: not found", async () => {
    const before = await inventory();
    const withIds = peopleRoutes.filter(({ path }) => path.includes("{"));
    expect(withIds.length).toBeGreaterThanOrEqual(28);
    for (const { method, path, operationId, tag } of withIds) {
      const stranger = strangers[tag as "cashier" | "backoffice"];
      const theirs = await send(system.baseUrl, method, pathOf(path), sending(operationId, stranger.token));
      expect(theirs, operationId).toMatchObject({ status: 404, body: { code: "not_found" } });
      // An id that does not exist gets the same answer, so that a caller cannot find out which ids exist.
      const nowhere = path.replaceAll(/\{\w+\}/g, "987654");
      const none = await send(system.baseUrl, method, nowhere, sending(operationId, stranger.token));
      expect({ ...none.body, request_id: "" }, operationId).toEqual({ ...theirs.body, request_id: "" });
    }
    expect(await inventory()).toEqual(before);
  });

  it("a call with another organization's id in the body: refused", async () => {
    const { station_id, consumer_id } = ids;
    const { filialId } = system.sandbox;
    const { backoffice, cashier: carl } = strangers;
    await backoffice.refused("not_found", "POST", "serving-tasks/", { body: offerBody(consumer_id ?? 0) });
    const spy = { body: { filial_id: filialId, name: "Spy", mode: "test" } };
    await backoffice.refused("not_found", "POST", "robotics-consumers/", spy);
    const hook = { body: { consumer_id, url: "http://127.0.0.1:9/hook" } };
    await backoffice.refused("not_found", "POST", "webhook-endpoints/", hook);
    const device = { body: { station_id, name: "Spy", kind: "customer_display" } };
    const station = { body: { filial_id: filialId, name: "Spy", currency: "EUR" } };
    await backoffice.refused("not_found", "POST", "devices/", device);
    await backoffice.refused("not_found", "POST", "stations/", station);
    await backoffice.refused("not_found", "GET", `devices/?station_id=${station_id}`);
    const { filial_id } = await backoffice.good<{ filial_id: number }>("POST", "filials/", { body: { name: "Own" } });
    const body = { filial_id, name: "Own", currency: "EUR" };
    const strangeStation = await backoffice.good<{ station_id: number }>("POST", "stations/", { body });
    await carl.good("POST", `stations/${strangeStation.station_id}/lease/`);
    const intent = { body: { order_id: ids["order_id"], route: "cash" } };
    await carl.refused("not_found", "POST", `stations/${strangeStation.station_id}/intents/`, intent);
    await carl.refused("intent_unknown", "GET", `stations/${strangeStation.station_id}/intents/${ids["intent_id"]}/`);
  });

  it("a list: contains only objects of the caller's organization", async () => {
    const names = system.sandbox.stations.flatMap(({ name, devices }) => [
      name,
      ...devices.map((device) => device.name),
    ]);
    const foreign = new RegExp([...names, system.owner.email, system.cashier.email].join("|"));
    expect(JSON.stringify(await owner.good("GET", "devices/"))).toMatch(foreign);
    for (const [stranger, path] of [
      [strangers.backoffice, "devices/"],
      [strangers.backoffice, "users/"],
      [strangers.cashier, "stations/"],
    ] as const)
      expect(JSON.stringify(await stranger.good("GET", path))).not.toMatch(foreign);
  });
});

describe("every route of the platform", () => {
  const callRow = (row: (typeof routes)[number], options: Parameters<typeof send>[3]) =>
    send(system.baseUrl, row.method, pathOf(row.path), options);

  it("`platformRoutes`: has the routes of organizations and of the platform's kill switch", () => {
    expect(platformRoutes.map(({ operationId }) => operationId).toSorted()).toEqual([
      "platform_create_organization",
      "platform_freeze_platform",
      "platform_get_kill_switch",
      "platform_get_organization",
      "platform_list_organizations",
      "platform_reset_owner_password",
      "platform_unfreeze_platform",
    ]);
  });

  it("a call without the platform key, also with a session's cookie: 401", async () => {
    for (const row of platformRoutes)
      for (const headers of [{}, { cookie: `dp_session=${owner.token}` }] as Record<string, string>[])
        expect(await callRow(row, { headers }), row.operationId).toMatchObject({
          status: 401,
          body: { code: "platform_key_missing" },
        });
  });

  it("a call by an owner, a cashier or a device: 401", async () => {
    for (const row of platformRoutes)
      for (const token of [owner.token, cashier.token, "dp_00_not-a-platform-key"])
        expect(await callRow(row, { token }), row.operationId).toMatchObject({
          status: 401,
          body: { code: "platform_key_invalid" },
        });
  });

  it("a call with the platform key: 200, or 400 for an empty body", async () => {
    for (const row of platformRoutes) {
      const json = row.body === undefined ? {} : { json: {} };
      const answer = await callRow(row, { token: PLATFORM_KEY, ...json });
      expect(answer.status, row.operationId).toBe(row.body === undefined ? 200 : 400);
    }
  });

  it("the platform key at a route for people: 401", async () => {
    for (const { method, path, operationId } of guarded) {
      const answer = await send(system.baseUrl, method, pathOf(path), sending(operationId, PLATFORM_KEY));
      expect(answer, operationId).toMatchObject({ status: 401, body: { code: "session_invalid" } });
    }
  });
});
