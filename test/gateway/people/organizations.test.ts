/** Organizations and first owners: over HTTP with the platform key, and by the command. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { registryEventsSchema } from "../../../gateway/api/backoffice/events.ts";
import type { createdOrganizationSchema, organizationsSchema } from "../../../gateway/api/platform/organizations.ts";
import { guideBlock, operationsGuide } from "../../support/guide.ts";
import { type Refused, send } from "../../support/http.ts";
import { logIn } from "../../support/people.ts";
import { programEnvironment, runProgram } from "../../support/running-program.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";

type Created = z.infer<typeof createdOrganizationSchema>;

const PLATFORM_KEY = "platform-key-of-the-organization-test";
const PATH = "/api/platform/v1/organizations/";
const CHECKOUT = join(import.meta.dirname, "..", "..", "..");
const COMMAND = join(CHECKOUT, "clients", "organization.ts");

let system: TestSystem;
beforeAll(async () => {
  system = await startSystem({ environment: { PLATFORM_KEY } });
});
afterAll(() => system.stop());

const create = <T>(json: object, token = PLATFORM_KEY) => send<T>(system.baseUrl, "POST", PATH, { json, token });
const body = (email: string) => ({ name: "Harbour", owner: { email, name: "Kim" }, by: "Ana" });

describe("an organization over HTTP", () => {
  it("its first owner logs in with the password that is shown once, and makes the rest", async () => {
    const made = await create<Created>(body("kim@harbour.example"));
    expect(made).toMatchObject({ status: 201, body: { owner: { role: "owner", status: "active" } } });
    const { organization, owner, initial_password: password } = made.body;
    const kim = await logIn(system.baseUrl, "backoffice", { email: owner.email, password: password ?? "" });
    await kim.good("POST", "filials/", { body: { name: "First" } });
    const { events } = await kim.good<z.infer<typeof registryEventsSchema>>("GET", "events/?since_id=0");
    expect(events.slice(0, 2)).toMatchObject([
      { action: "organization_created", actor: { kind: "platform", name: "Ana" } },
      { action: "user_created", actor: { kind: "platform", name: "Ana" } },
    ]);
    expect(JSON.stringify(events)).not.toContain(password);
    const one = await send(system.baseUrl, "GET", `${PATH}${organization.organization_id}/`, { token: PLATFORM_KEY });
    expect(one.body).toEqual(organization);
    const all = await send<z.infer<typeof organizationsSchema>>(system.baseUrl, "GET", `${PATH}?limit=1`, {
      token: PLATFORM_KEY,
    });
    expect(all.body).toMatchObject({ organizations: [{ sandbox: true }], has_more: true });
  });

  it("a password that was given: it is not shown, and holds", async () => {
    const password = "a long enough password";
    const owner = { email: "given@harbour.example", name: "Kim", password };
    const made = await create<Created>({ name: "Given", owner });
    expect([made.status, made.body.initial_password]).toEqual([201, null]);
    await logIn(system.baseUrl, "backoffice", { email: owner.email, password });
  });

  it("a taken address, a wrong field, a wrong key and an unknown id: refused", async () => {
    const taken = await create<Refused>(body(system.owner.email));
    expect([taken.status, taken.body.code]).toEqual([409, "already_exists"]);
    expect(taken.body.detail).toBe("Another person has this e-mail address; use another address.");
    const wrong = await create<Refused>({ name: "", owner: { email: "x", name: "Kim", role: "owner" } });
    expect(wrong.body.errors?.map(({ pointer }) => pointer).toSorted()).toEqual([
      "/name",
      "/owner/email",
      "/owner/role",
    ]);
    expect((await create<Refused>(body("x@y.example"), "wrong")).body.code).toBe("platform_key_invalid");
    expect((await send<Refused>(system.baseUrl, "POST", PATH, { json: body("x@y.example") })).status).toBe(401);
    const none = await send<Refused>(system.baseUrl, "GET", `${PATH}987654/`, { token: PLATFORM_KEY });
    expect(none.body.code).toBe("not_found");
  });
});

async function command(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const program = runProgram(process.execPath, [COMMAND, ...args], {
    env: programEnvironment({ BASE_URL: system.baseUrl, PLATFORM_KEY, ...env }),
  });
  const code = await program.ended;
  return { code, out: program.output() };
}

describe("the operators' guide", () => {
  it("its commands for the first restaurant: each succeeds, and the device enrolls with the printed code", async () => {
    const script = guideBlock("sh", "clients/organization.ts create", operationsGuide);
    const passwords = { OWNER_PASSWORD: "the owner's new password", CASHIER_PASSWORD: "the cashier's password" };
    const program = runProgram("bash", ["-euo", "pipefail", "-c", script], {
      cwd: CHECKOUT,
      env: programEnvironment({ BASE_URL: system.baseUrl, PLATFORM_KEY, ...passwords }),
    });
    expect(await program.ended, program.output()).toBe(0);
    const code = program.output().trim().split("\n").at(-1);
    const enrolled = await send(system.baseUrl, "POST", "/api/payments/v1/devices/enroll/", { json: { code } });
    expect(enrolled.status, program.output()).toBe(201);
    const cashier = { email: "cashier@harbour.example", password: passwords.CASHIER_PASSWORD };
    await logIn(system.baseUrl, "cashier", cashier);
  });
});

describe("the command", () => {
  it("create and list: as JSON for programs", async () => {
    const made = await command(["create", "--name", "Quay", "--owner-email", "quay@harbour.example", "--json"]);
    expect(made.code).toBe(0);
    const { organization, owner, initial_password: password } = JSON.parse(made.out) as Created;
    await logIn(system.baseUrl, "backoffice", { email: owner.email, password: password ?? "" });
    const listed = await command(["list", "--json"]);
    const { organizations } = JSON.parse(listed.out) as z.infer<typeof organizationsSchema>;
    expect(organizations).toContainEqual(organization);
  });

  it("exit codes: 0 with help, 2 for arguments, 1 for what is refused or not reached, each with one sentence", async () => {
    const help = await command(["--help"]);
    expect([help.code, help.out.includes("--owner-email")]).toEqual([0, true]);
    for (const args of [[], ["create", "--name", "Quay"], ["remove"], ["list", "--nothing"]])
      expect((await command(args)).code).toBe(2);
    const again = ["create", "--name", "Quay", "--owner-email", system.owner.email];
    expect(await command(again)).toMatchObject({ code: 1, out: expect.stringContaining("(already_exists)") });
    expect((await command(["list"], { PLATFORM_KEY: "wrong" })).code).toBe(1);
    expect((await command(["list", "--base-url", "http://127.0.0.1:9"])).code).toBe(1);
    expect((await command(["list"], { PLATFORM_KEY: "", DATA_DIR: "/nowhere" })).out).toContain("Set PLATFORM_KEY");
  });
});
