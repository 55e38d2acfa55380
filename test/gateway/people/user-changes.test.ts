/** Changes of a person's name, e-mail address and role, and of a filial's name, over HTTP. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { registryEventsSchema } from "../../../gateway/api/backoffice/events.ts";
import type { filialSchema, filialsSchema } from "../../../gateway/api/backoffice/filials.ts";
import type { userSchema } from "../../../gateway/api/backoffice/users.ts";
import type { leaseSchema } from "../../../gateway/api/cashier/leases.ts";
import { send } from "../../support/http.ts";
import { logIn, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { LogIn, TestSystem } from "../../support/system.ts";

type User = z.infer<typeof userSchema>;

let system: TestSystem;
let owner: Person;
beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(() => system.stop());

let people = 0;
async function newPerson(role: User["role"] = "cashier"): Promise<{ user: User; details: LogIn }> {
  const details = { email: `person-${(people += 1)}@sandbox.example`, password: "the first password" };
  return { user: await owner.good<User>("POST", "users/", { body: { ...details, name: "Carl", role } }), details };
}
const change = (user: User, body: object) => owner.good<User>("PATCH", `users/${user.user_id}/`, { body });
const auditLog = async (kind: string, id: number) => {
  const { events } = await owner.good<z.infer<typeof registryEventsSchema>>("GET", "events/?limit=500");
  return events.filter(({ subject }) => subject.kind === kind && subject.id === id);
};

describe("the change of a person", () => {
  it("a new name and e-mail address: used from the next log-in on, and open sessions stay", async () => {
    const { user, details } = await newPerson();
    const session = await logIn(system.baseUrl, "cashier", details);
    const changed = await change(user, { name: "Carla", email: "Carla@Sandbox.example" });
    expect(changed).toEqual({ ...user, name: "Carla", email: "carla@sandbox.example" });
    expect((await session.call("GET", "session/")).status).toBe(200);
    const old = await send(system.baseUrl, "POST", "/api/cashier/v1/session/", { json: details });
    expect(old.status).toBe(401);
    const renamed = await logIn(system.baseUrl, "cashier", { ...details, email: "carla@sandbox.example" });
    expect(renamed.name).toBe("Carla");
    const [entry] = await auditLog("user", user.user_id);
    expect(entry).toMatchObject({
      action: "user_changed",
      actor: { kind: "owner", id: owner.userId },
      data: {
        from: { name: "Carl", email: details.email, role: "cashier" },
        to: { name: "Carla", email: "carla@sandbox.example", role: "cashier" },
      },
    });
  });

  it("a new role: the sessions and the lease of the old role end at once", async () => {
    const { user, details } = await newPerson();
    const cashier = await logIn(system.baseUrl, "cashier", details);
    const lease = `stations/${system.sandbox.stations[0]?.stationId}/lease/`;
    await cashier.good("POST", lease);
    expect(await change(user, { role: "reconciliation_operator" })).toMatchObject({
      role: "reconciliation_operator",
      permissions: ["reconciliation.manage"],
    });
    expect((await cashier.call("GET", "session/")).status).toBe(401);
    expect(await owner.good<z.infer<typeof leaseSchema>>("GET", lease)).toMatchObject({ lease: null });
    const again = await send(system.baseUrl, "POST", "/api/cashier/v1/session/", { json: details });
    expect(again).toMatchObject({ status: 403, body: { code: "permission_denied" } });
    await logIn(system.baseUrl, "reconciliation", details);
  });

  it("the same values: nothing is written, and no session ends", async () => {
    const { user, details } = await newPerson();
    const session = await logIn(system.baseUrl, "cashier", details);
    expect(await change(user, { name: "Carl", role: "cashier" })).toEqual(user);
    expect(await change(user, {})).toEqual(user);
    expect((await session.call("GET", "session/")).status).toBe(200);
    expect((await auditLog("user", user.user_id)).map(({ action }) => action)).toEqual(["user_created"]);
  });

  it("a used address, in any spelling: refused", async () => {
    const { user } = await newPerson();
    const body = { email: system.cashier.email.toUpperCase() };
    const refused = await owner.refused("already_exists", "PATCH", `users/${user.user_id}/`, { body });
    expect(refused.status).toBe(409);
    expect(refused.body.detail).toBe("Another person has this e-mail address; use another address.");
  });

  it("unknown or invalid fields: the error names each one", async () => {
    const { user } = await newPerson();
    const body = { name: "", email: "no address", role: "waiter", status: "active" };
    const refused = await owner.refused("invalid_request", "PATCH", `users/${user.user_id}/`, { body });
    expect(refused.body.errors?.map(({ pointer }) => pointer).toSorted()).toEqual([
      "/email",
      "/name",
      "/role",
      "/status",
    ]);
  });

  it("the last owner: keeps the role; an owner beside another one may change to another role", async () => {
    const body = { role: "cashier" };
    expect((await owner.refused("conflict", "PATCH", `users/${owner.userId}/`, { body })).status).toBe(409);
    const second = await newPerson("owner");
    const other = await logIn(system.baseUrl, "backoffice", second.details);
    expect(await other.good("PATCH", `users/${second.user.user_id}/`, { body })).toMatchObject({ role: "cashier" });
    expect((await other.call("GET", "users/")).status).toBe(401);
    expect((await owner.refused("conflict", "PATCH", `users/${owner.userId}/`, { body })).status).toBe(409);
  });
});

describe("the change of a filial", () => {
  it("a new name: shown, with both names in the audit log", async () => {
    const made = await owner.good<z.infer<typeof filialSchema>>("POST", "filials/", { body: { name: "Old town" } });
    const path = `filials/${made.filial_id}/`;
    const renamed = await owner.good("PATCH", path, { body: { name: "Harbour" } });
    expect(renamed).toEqual({ ...made, name: "Harbour" });
    expect(await owner.good("GET", path)).toEqual(renamed);
    const { filials } = await owner.good<z.infer<typeof filialsSchema>>("GET", "filials/");
    expect(filials).toContainEqual(renamed);
    expect(await auditLog("filial", made.filial_id)).toMatchObject([
      { action: "filial_renamed", data: { from: "Old town", to: "Harbour" } },
      { action: "filial_created" },
    ]);
    await owner.refused("not_found", "PATCH", "filials/987654/", { body: { name: "Harbour" } });
  });
});
