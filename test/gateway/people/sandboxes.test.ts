/** Sandboxes over HTTP: an owner of an ordinary organization seeds, uses, resets and deletes them. */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import { enrollDevice } from "../../support/devices.ts";
import { logIn, type Person } from "../../support/people.ts";
import { addOrganization } from "../../support/second-organization.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

interface Device {
  readonly device_id: number;
  readonly status: string;
}
interface Sandbox {
  readonly sandbox_id: number;
  readonly station_id: number;
  readonly config_id: number;
  readonly reset_at: string | null;
  readonly display: Device;
  readonly companion: Device;
  readonly cashier: { readonly user_id: number; readonly email: string };
}
type Fresh = Sandbox & {
  readonly display: { readonly enrollment_code: string };
  readonly companion: { readonly enrollment_code: string };
  readonly cashier: { readonly password: string };
};
interface Config {
  readonly config_id: number;
  readonly mode: string;
  readonly kind: string;
  readonly status: string;
}

let system: TestSystem;
let owner: Person;
let filialId: number;

beforeAll(async () => {
  system = await sharedSystem({ sandboxProvider: true });
  const { owner: details } = await addOrganization(system);
  owner = await logIn(system.baseUrl, "backoffice", details);
  filialId = (await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name: "Main street" } })).filial_id;
});
afterAll(() => system.stop());

const seed = (name = "Test counter"): Promise<Fresh> =>
  owner.good<Fresh>("POST", "sandboxes/", { body: { filial_id: filialId, name, currency: "EUR" } });
const logInCashier = ({ cashier: { email, password } }: Fresh): Promise<Person> =>
  logIn(system.baseUrl, "cashier", { email, password });
const configsOf = async (filial: number): Promise<readonly Config[]> =>
  (await owner.good<{ provider_configs: Config[] }>("GET", `provider-configs/?filial_id=${filial}`)).provider_configs;

/** Acquires the lease of the station, opens an order and begins its collection. */
async function beginCollection(cashier: Person, { station_id }: Sandbox, route = "smart_pos") {
  await cashier.good("POST", `stations/${station_id}/lease/`);
  const lines = [{ name: "Soup", quantity: 1, unit_amount: "4.50" }];
  const order = await cashier.good<{ order_id: number }>("POST", `stations/${station_id}/orders/`, { body: { lines } });
  const intent = await cashier.good<{ intent_id: number }>("POST", `stations/${station_id}/intents/`, {
    body: { order_id: order.order_id, route },
  });
  return { orderId: order.order_id, intentId: intent.intent_id };
}

describe("a seeded sandbox", () => {
  it("has a station with two pending devices and a cashier, and its filial gets a test provider", async () => {
    const sandbox = await seed();
    expect(sandbox).toMatchObject({ reset_at: null, display: { status: "pending" }, companion: { status: "pending" } });
    const station = await owner.good("GET", `stations/${sandbox.station_id}/`);
    expect(station).toMatchObject({ sandbox: true, status: "active", name: "Test counter", currency: "EUR" });
    expect(await configsOf(filialId)).toMatchObject([
      { config_id: sandbox.config_id, mode: "test", kind: "sandbox", status: "active" },
    ]);
    const read = await owner.good<Sandbox>("GET", `sandboxes/${sandbox.sandbox_id}/`);
    expect(JSON.stringify(read)).not.toContain(sandbox.cashier.password);
    expect(JSON.stringify(read)).not.toContain(sandbox.display.enrollment_code);
  });

  it("collects like any other station: the companion reports, the cashier attests, the display shows it paid", async () => {
    const sandbox = await seed();
    const cashier = await logInCashier(sandbox);
    const companion = await enrollDevice(system.baseUrl, sandbox.companion.enrollment_code);
    const display = await enrollDevice(system.baseUrl, sandbox.display.enrollment_code);
    await companion.good("POST", "heartbeat/", { body: {} });
    const { orderId, intentId } = await beginCollection(cashier, sandbox);
    await companion.good("GET", "assignment/");
    const report = { intent_id: intentId, outcome: "reported_success", provider_reference: "SLIP-1" };
    await companion.good("POST", "assignment/report/", { body: report });
    await cashier.good("POST", `stations/${sandbox.station_id}/intents/${intentId}/attest/`, { body: {} });
    expect(await cashier.good("GET", `orders/${orderId}/`)).toMatchObject({ status: "paid" });
    expect(await display.good("GET", "display/")).toMatchObject({ state: "paid", amount: "4.50" });
  });

  it("three at one filial, seeded at the same moment: each has its station, and all share one provider config", async () => {
    const filial = await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name: "Side street" } });
    const body = { filial_id: filial.filial_id, name: "Together", currency: "EUR" };
    const seeded = await Promise.all([1, 2, 3].map(() => owner.good<Fresh>("POST", "sandboxes/", { body })));
    expect(new Set(seeded.map(({ station_id }) => station_id)).size).toBe(3);
    expect(new Set(seeded.map(({ config_id }) => config_id)).size).toBe(1);
  });

  it("a refused first seed at a filial: its provider config does not stay active", async () => {
    const options = (id: number) => ({ body: { filial_id: id, name: "Once", currency: "EUR" }, key: "one-sandbox" });
    await owner.good("POST", "sandboxes/", options(filialId));
    const other = await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name: "Second street" } });
    await owner.refused("idempotency_key_reused", "POST", "sandboxes/", options(other.filial_id));
    expect(await configsOf(other.filial_id)).toMatchObject([{ mode: "test", status: "disabled" }]);
  });

  it("another organization's filial, an unknown currency, or another organization's owner: refused", async () => {
    const body = { filial_id: system.sandbox.filialId, name: "Foreign", currency: "EUR" };
    await owner.refused("not_found", "POST", "sandboxes/", { body });
    const unknown = { filial_id: filialId, name: "Unknown", currency: "XXX" };
    await owner.refused("invalid_request", "POST", "sandboxes/", { body: unknown });
    const { sandbox_id } = await seed();
    const other = await logIn(system.baseUrl, "backoffice", system.owner);
    for (const [method, path] of [
      ["GET", ""],
      ["POST", "reset/"],
      ["DELETE", ""],
    ] as const)
      await other.refused("not_found", method, `sandboxes/${sandbox_id}/${path}`);
  });
});

describe("the reset of a sandbox", () => {
  it("ends all access, cancels the collection, voids the order and frees the station; ids stay the same", async () => {
    const sandbox = await seed();
    const cashier = await logInCashier(sandbox);
    const companion = await enrollDevice(system.baseUrl, sandbox.companion.enrollment_code);
    await companion.good("POST", "heartbeat/", { body: {} });
    const { orderId, intentId } = await beginCollection(cashier, sandbox);
    await companion.good("GET", "assignment/");

    const reset = await owner.good<Fresh>("POST", `sandboxes/${sandbox.sandbox_id}/reset/`);
    expect(reset).toMatchObject({
      sandbox_id: sandbox.sandbox_id,
      station_id: sandbox.station_id,
      display: { device_id: sandbox.display.device_id, status: "pending" },
      companion: { device_id: sandbox.companion.device_id, status: "pending" },
      cashier: { user_id: sandbox.cashier.user_id, email: sandbox.cashier.email },
      reset_at: expect.any(String) as string,
    });
    await companion.refused("credential_invalid", "GET", "me/");
    await cashier.refused("session_invalid", "GET", "stations/");
    expect((await owner.call("GET", `stations/${sandbox.station_id}/lease/`)).body).toMatchObject({ lease: null });
    expect(await owner.good("GET", `orders/${orderId}/`)).toMatchObject({ status: "voided" });
    const again = await logInCashier(reset);
    expect(await again.good("GET", `stations/${sandbox.station_id}/intents/${intentId}/`)).toMatchObject({
      status: "cancelled",
    });
    const enrolled = await enrollDevice(system.baseUrl, reset.companion.enrollment_code);
    expect(enrolled.deviceId).toBe(sandbox.companion.device_id);
    await beginAfterHeartbeat(enrolled, again, reset);
  });

  const beginAfterHeartbeat = async (
    companion: Awaited<ReturnType<typeof enrollDevice>>,
    cashier: Person,
    sandbox: Sandbox,
  ): Promise<void> => {
    await companion.good("POST", "heartbeat/", { body: {} });
    await beginCollection(cashier, sandbox);
  };

  it("a shown QR: its collection is cancelled, and its order is voided", async () => {
    const sandbox = await seed();
    const cashier = await logInCashier(sandbox);
    const display = await enrollDevice(system.baseUrl, sandbox.display.enrollment_code);
    await display.good("POST", "heartbeat/", { body: {} });
    const { orderId, intentId } = await beginCollection(cashier, sandbox, "dynamic_qr");
    const reset = await owner.good<Fresh>("POST", `sandboxes/${sandbox.sandbox_id}/reset/`);
    const again = await logInCashier(reset);
    expect(await again.good("GET", `stations/${sandbox.station_id}/intents/${intentId}/`)).toMatchObject({
      status: "cancelled",
    });
    expect(await again.good("GET", `orders/${orderId}/`)).toMatchObject({ status: "voided" });
  });

  it("suspended parts are resumed, and a revoked device is replaced", async () => {
    const sandbox = await seed();
    await owner.good("POST", `stations/${sandbox.station_id}/suspend/`);
    await owner.good("POST", `users/${sandbox.cashier.user_id}/suspend/`);
    await owner.good("POST", `devices/${sandbox.display.device_id}/revoke/`);
    const reset = await owner.good<Fresh>("POST", `sandboxes/${sandbox.sandbox_id}/reset/`);
    expect(reset.display.device_id).not.toBe(sandbox.display.device_id);
    await enrollDevice(system.baseUrl, reset.display.enrollment_code);
    await (await logInCashier(reset)).good("POST", `stations/${sandbox.station_id}/lease/`);
  });

  it("freezes of the station and its devices end, and no others; a deletion has the same effect", async () => {
    const sandbox = await seed();
    const other = await seed("Another one");
    const freeze = async ({ station_id: stationId, display, companion }: Sandbox): Promise<void> => {
      const ids = [display.device_id, companion.device_id];
      for (const path of [`stations/${stationId}`, ...ids.map((id) => `devices/${id}`)])
        await owner.good("POST", `${path}/freeze/`, { body: { reason: "Test" } });
    };
    const frozen = async (): Promise<number[]> => {
      const { kill_switches: switches } = await owner.good<{
        kill_switches: { subject: { kind: string; id: number } }[];
      }>("GET", "kill-switches/?limit=500");
      return switches.filter(({ subject }) => subject.kind === "station").map(({ subject }) => subject.id);
    };
    await freeze(sandbox);
    await freeze(other);
    const reset = await owner.good<Fresh>("POST", `sandboxes/${sandbox.sandbox_id}/reset/`);
    expect(await frozen()).toEqual([other.station_id]);
    const cashier = await logInCashier(reset);
    const companion = await enrollDevice(system.baseUrl, reset.companion.enrollment_code);
    await companion.good("POST", "heartbeat/", { body: {} });
    await beginCollection(cashier, reset);
    expect((await owner.call("DELETE", `sandboxes/${other.sandbox_id}/`)).status).toBe(204);
    expect(await owner.good("GET", "kill-switches/")).toMatchObject({ kill_switches: [] });
  });

  it("device settings: restored as the reset before has kept them; a revoked device: replaced", async () => {
    const { sandbox_id: sandboxId, display, companion } = await seed();
    const declare = async (capabilities: string[], handoff_target: string): Promise<void> => {
      await owner.good("PATCH", `devices/${display.device_id}/`, { body: { capabilities } });
      await owner.good("PATCH", `devices/${companion.device_id}/`, { body: { handoff_target } });
    };
    const settings = async (): Promise<unknown> => {
      const read = (id: number) =>
        owner.good<{ capabilities: string[]; handoff_target: string }>("GET", `devices/${id}/`);
      return [(await read(display.device_id)).capabilities, (await read(companion.device_id)).handoff_target];
    };
    const reset = (body: object) => owner.good<Fresh>("POST", `sandboxes/${sandboxId}/reset/`, { body });
    await declare(["display_total"], "pos://kept");
    await reset({ keeps_settings: true });
    await declare(["display_total", "qr_dynamic_present"], "");
    await reset({ keeps_settings: true });
    expect(await settings()).toEqual([["display_total"], "pos://kept"]);
    await declare(["qr_dynamic_present"], "pos://changed");
    await reset({});
    expect(await settings()).toEqual([["display_total"], "pos://kept"]);
    await declare(["qr_dynamic_present"], "pos://later");
    await reset({ keeps_settings: true });
    expect(await settings()).toEqual([["qr_dynamic_present"], "pos://later"]);
    await owner.good("POST", `devices/${display.device_id}/revoke/`);
    const { display: other } = await reset({});
    expect(await owner.good("GET", `devices/${other.device_id}/`)).toMatchObject({
      capabilities: ["display_total", "qr_dynamic_present"],
    });
    expect(await settings()).toEqual([["qr_dynamic_present"], "pos://later"]);
  });

  it("a revoked device at a full station: the reset is refused, and succeeds when a place is free", async () => {
    const { sandbox_id: sandboxId, station_id, display } = await seed();
    await owner.good("POST", `devices/${display.device_id}/revoke/`);
    const body = { station_id, name: "Terrace", kind: "customer_display" };
    const added = await Promise.all(
      Array.from({ length: STATE_LIMITS.devices - 1 }, () =>
        owner.good<{ device_id: number }>("POST", "devices/", { body }),
      ),
    );
    await owner.refused("device_limit_reached", "POST", `sandboxes/${sandboxId}/reset/`);
    await owner.good("POST", `devices/${added[0]?.device_id ?? 0}/revoke/`);
    const reset = await owner.good<Fresh>("POST", `sandboxes/${sandboxId}/reset/`);
    await enrollDevice(system.baseUrl, reset.display.enrollment_code);
  });

  it("two resets in a row: accepted; a closed station: refused", async () => {
    const sandbox = await seed();
    const path = `sandboxes/${sandbox.sandbox_id}/reset/`;
    const first = await owner.good<Fresh>("POST", path);
    const second = await owner.good<Fresh>("POST", path);
    expect(second.display.enrollment_code).not.toBe(first.display.enrollment_code);
    await owner.good("POST", `stations/${sandbox.station_id}/close/`);
    await owner.refused("conflict", "POST", path);
  });
});

describe("a sandbox whose cashier has become an owner", () => {
  it("its reset: refused; its deletion: does not change that person", async () => {
    const sandbox = await seed();
    const { user_id } = sandbox.cashier;
    await owner.good("PATCH", `users/${user_id}/`, { body: { role: "owner" } });
    await owner.refused("conflict", "POST", `sandboxes/${sandbox.sandbox_id}/reset/`);
    expect((await owner.call("DELETE", `sandboxes/${sandbox.sandbox_id}/`)).status).toBe(204);
    const { users } = await owner.good<{ users: { user_id: number; status: string }[] }>("GET", "users/");
    expect(users.find((user) => user.user_id === user_id)).toMatchObject({ status: "active" });
  });
});

describe("the deletion of a sandbox", () => {
  it("closes, revokes and suspends its parts; the last one at a filial also disables the provider config", async () => {
    const filial = await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name: "Third street" } });
    const body = { filial_id: filial.filial_id, name: "Short-lived", currency: "EUR" };
    const first = await owner.good<Fresh>("POST", "sandboxes/", { body });
    const second = await owner.good<Fresh>("POST", "sandboxes/", { body });
    const cashier = await logInCashier(first);
    const statusOfConfig = async () =>
      (await configsOf(filial.filial_id)).find(({ config_id }) => config_id === first.config_id)?.status;

    expect((await owner.call("DELETE", `sandboxes/${first.sandbox_id}/`)).status).toBe(204);
    expect(await owner.good("GET", `stations/${first.station_id}/`)).toMatchObject({ status: "closed" });
    expect(await owner.good("GET", `devices/${first.display.device_id}/`)).toMatchObject({ status: "revoked" });
    await cashier.refused("session_invalid", "GET", "stations/");
    await owner.refused("not_found", "GET", `sandboxes/${first.sandbox_id}/`);
    // A fixed defect: while another sandbox used the config, a repetition was refused.
    expect((await owner.call("DELETE", `sandboxes/${first.sandbox_id}/`)).status).toBe(204);
    expect(await statusOfConfig()).toBe("active");
    await owner.good("DELETE", `sandboxes/${second.sandbox_id}/`);
    expect(await statusOfConfig()).toBe("disabled");
    // A fixed defect: a repetition disabled a config that its owner had activated again.
    await owner.good("PATCH", `provider-configs/${first.config_id}/`, { body: { status: "active" } });
    await owner.good("DELETE", `sandboxes/${second.sandbox_id}/`);
    expect(await statusOfConfig()).toBe("active");
    await owner.good("PATCH", `provider-configs/${first.config_id}/`, { body: { status: "disabled" } });
    const { sandboxes } = await owner.good<{ sandboxes: Sandbox[] }>("GET", "sandboxes/");
    expect(sandboxes.map(({ sandbox_id }) => sandbox_id)).not.toContain(first.sandbox_id);
    // A fixed defect: each further sandbox made another config, until the organization could have no more.
    const third = await owner.good<Fresh>("POST", "sandboxes/", { body });
    expect(third.config_id).toBe(first.config_id);
    await owner.good("DELETE", `sandboxes/${second.sandbox_id}/`);
    expect(await configsOf(filial.filial_id)).toMatchObject([{ status: "active" }]);
    // As after a deletion that ended before the config was disabled: the repetition disables it.
    const sql = postgres(system.database.url, { max: 1 });
    await sql`update sandboxes set deleted_at = now() where sandbox_id = ${third.sandbox_id}`;
    await sql.end();
    await owner.good("DELETE", `sandboxes/${third.sandbox_id}/`);
    expect(await statusOfConfig()).toBe("disabled");
  });

  it("after its station was closed: a collection is cancelled, and open orders are voided", async () => {
    const seeded = [await seed("With a collection"), await seed("With an order")] as const;
    const [collecting, waiting] = seeded;
    const { orderId, intentId } = await beginCollection(await logInCashier(collecting), collecting, "cash");
    const lines = [{ name: "Soup", quantity: 1, unit_amount: "4.50" }];
    const other = await (await logInCashier(waiting)).good<{ order_id: number }>(
      "POST",
      `stations/${waiting.station_id}/orders/`,
      { body: { lines } },
    );
    for (const { sandbox_id, station_id } of seeded) {
      await owner.good("POST", `stations/${station_id}/close/`);
      expect((await owner.call("DELETE", `sandboxes/${sandbox_id}/`)).status).toBe(204);
    }
    // A fixed defect: the deletion left both orders open for ever.
    for (const id of [orderId, other.order_id])
      expect(await owner.good("GET", `orders/${id}/`)).toMatchObject({ status: "voided" });
    const timeline = () => owner.good<{ status: string }>("GET", `intents/${intentId}/timeline/`);
    await expect.poll(async () => (await timeline()).status, { timeout: 10_000 }).toBe("cancelled");
  });

  it("a sandbox that is seeded during the deletion of the last other one: keeps its provider config", async () => {
    const filial = await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name: "Fourth street" } });
    const body = { filial_id: filial.filial_id, name: "Together", currency: "EUR" };
    const { sandbox_id: other } = await owner.good<Fresh>("POST", "sandboxes/", { body });
    const { sandbox_id: last } = await owner.good<Fresh>("POST", "sandboxes/", { body });
    await owner.good("DELETE", `sandboxes/${other}/`);
    const sql = postgres(system.database.url, { max: 2 });
    const isDeleted = async () =>
      (await sql`select from sandboxes where sandbox_id = ${last} and deleted_at is not null`).length === 1;
    const deletion = await sql.begin(async (tx) => {
      // The config cannot be disabled before the commit. Meanwhile the deleted sandbox comes back, as a new one would come.
      await tx`select from filials where filial_id = ${filial.filial_id} for update`;
      const answer = owner.good("DELETE", `sandboxes/${last}/`);
      await expect.poll(isDeleted, { timeout: 10_000 }).toBe(true);
      await tx`update sandboxes set deleted_at = null where sandbox_id = ${other}`;
      return { answer };
    });
    await deletion.answer;
    await sql.end();
    expect(await configsOf(filial.filial_id)).toMatchObject([{ status: "active" }]);
    await owner.good("DELETE", `sandboxes/${other}/`);
    expect(await configsOf(filial.filial_id)).toMatchObject([{ status: "disabled" }]);
  });
});
