/** Organizations and their first owners: over HTTP with the platform key, and with the command. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { registryEventsSchema } from "../../../gateway/api/backoffice/events.ts";
import type {
  createdOrganizationSchema,
  organizationsSchema,
  ownerPasswordResetSchema,
} from "../../../gateway/api/platform/organizations.ts";
import { guideBlock, operationsGuide } from "../../support/guide.ts";
import { type Refused, send } from "../../support/http.ts";
import { logIn } from "../../support/people.ts";
import { programEnvironment, runProgram } from "../../support/running-program.ts";
import { PLATFORM_KEY, sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type Created = z.infer<typeof createdOrganizationSchema>;
type Reset = z.infer<typeof ownerPasswordResetSchema>;

const PATH = "/api/platform/v1/organizations/";
const CHECKOUT = join(import.meta.dirname, "..", "..", "..");
const COMMAND = join(CHECKOUT, "clients", "organization.ts");

let system: TestSystem;
beforeAll(async () => {
  system = await sharedSystem();
});
afterAll(() => system.stop());

const create = <T>(json: object, token = PLATFORM_KEY) => send<T>(system.baseUrl, "POST", PATH, { json, token });
const body = (email: string) => ({ name: "Harbour", owner: { email, name: "Kim" }, by: "Ana" });

describe("the creation of an organization over HTTP", () => {
  it("without a password: a new one is shown once; with it, the first owner logs in and creates a filial", async () => {
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
    expect(all.body).toMatchObject({ organizations: [{ name: expect.any(String) }], has_more: true });
    const path = `${PATH}${system.sandbox.organizationId}/`;
    expect((await send(system.baseUrl, "GET", path, { token: PLATFORM_KEY })).body).toMatchObject({ sandbox: true });
  });

  it("with a password: it is not shown, and the owner logs in with it", async () => {
    const password = "a long enough password";
    const owner = { email: "given@harbour.example", name: "Kim", password };
    const made = await create<Created>({ name: "Given", owner });
    expect([made.status, made.body.initial_password]).toEqual([201, null]);
    await logIn(system.baseUrl, "backoffice", { email: owner.email, password });
  });

  it("a used address, a wrong field, a wrong key and an unknown id: refused", async () => {
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

describe("the reset of an owner's password over HTTP", () => {
  const reset = <T>(json: object, token = PLATFORM_KEY) =>
    send<T>(system.baseUrl, "POST", "/api/platform/v1/owner-passwords/", { json, token });

  it("without a password: a new one is shown once, the old one and the sessions end; the audit log names it", async () => {
    const made = await create<Created>(body("lost@harbour.example"));
    const { email } = made.body.owner;
    const old = { email, password: made.body.initial_password ?? "" };
    const before = await logIn(system.baseUrl, "backoffice", old);
    const answer = await reset<Reset>({ email: email.toUpperCase(), by: "Ana" });
    expect(answer).toMatchObject({ status: 200, body: { owner: made.body.owner } });
    expect((await send(system.baseUrl, "GET", "/api/backoffice/v1/users/", { token: before.token })).status).toBe(401);
    const refused = await send<Refused>(system.baseUrl, "POST", "/api/backoffice/v1/session/", { json: old });
    expect([refused.status, refused.body.code]).toEqual([401, "login_failed"]);
    const password = answer.body.initial_password ?? "";
    const after = await logIn(system.baseUrl, "backoffice", { email, password });
    const { events } = await after.good<z.infer<typeof registryEventsSchema>>("GET", "events/?since_id=0");
    expect(events).toContainEqual(
      expect.objectContaining({
        action: "user_password_reset",
        actor: { kind: "platform", id: 0, name: "Ana" },
        subject: { kind: "user", id: made.body.owner.user_id },
      }),
    );
    expect(JSON.stringify(events)).not.toContain(password);
  });

  it("with a password: it is not shown, and the owner logs in with it", async () => {
    const made = await create<Created>(body("chosen@harbour.example"));
    const details = { email: made.body.owner.email, password: "another long enough password" };
    const answer = await reset<Reset>(details);
    expect([answer.status, answer.body.initial_password]).toEqual([200, null]);
    await logIn(system.baseUrl, "backoffice", details);
  });

  it("an unknown address, a cashier's, a short password and a wrong key: refused, and nothing changes", async () => {
    for (const email of ["unknown@harbour.example", system.cashier.email]) {
      const answer = await reset<Refused>({ email });
      expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
      expect(answer.body.detail).toBe("No owner has this e-mail address.");
    }
    const short = await reset<Refused>({ email: system.owner.email, password: "short" });
    expect([short.status, short.body.errors?.map(({ pointer }) => pointer)]).toEqual([400, ["/password"]]);
    expect((await reset<Refused>({ email: system.owner.email }, "wrong")).body.code).toBe("platform_key_invalid");
    await logIn(system.baseUrl, "cashier", system.cashier);
    await logIn(system.baseUrl, "backoffice", system.owner);
  });
});

async function command(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const program = runProgram(process.execPath, [COMMAND, ...args], {
    env: programEnvironment({ BASE_URL: system.baseUrl, PLATFORM_KEY, ...env }),
  });
  const code = await program.ended;
  return { code, out: program.output() };
}

describe("the operators' guide: the script for the first restaurant", () => {
  const passwords = { OWNER_PASSWORD: "the owner's new password", CASHIER_PASSWORD: "the cashier's password" };

  /** Runs the guide's script, with e-mail addresses of that domain. */
  async function runScript(domain: string, settings: Readonly<Record<string, string>>) {
    const script = guideBlock("sh", "clients/organization.ts create", operationsGuide);
    const program = runProgram("sh", ["-c", script.replaceAll("harbour.example", domain)], {
      cwd: CHECKOUT,
      env: programEnvironment({ BASE_URL: system.baseUrl, PLATFORM_KEY, ...settings }),
    });
    return { code: await program.ended, out: program.output() };
  }

  it("succeeds, and the device enrolls with the printed code; a second run changes nothing", async () => {
    const done = await runScript("first.example", passwords);
    expect(done.code, done.out).toBe(0);
    const code = done.out.trim().split("\n").at(-1);
    const enrolled = await send(system.baseUrl, "POST", "/api/payments/v1/devices/enroll/", {
      json: { code },
      // The claim comes from another address, because one address may claim ten codes a minute.
      headers: { "x-forwarded-for": "10.9.8.6" },
    });
    expect(enrolled.status, done.out).toBe(201);
    const cashier = { email: "cashier@first.example", password: passwords.CASHIER_PASSWORD };
    await logIn(system.baseUrl, "cashier", cashier);
    // A second run ends at once with one sentence, and it changes nothing.
    const again = await runScript("first.example", { ...passwords, OWNER_PASSWORD: "another long password" });
    expect(again.code).not.toBe(0);
    expect(again.out).toBe("Another person has this e-mail address; use another address. (already_exists)\n");
    const owner = { email: "owner@first.example", password: passwords.OWNER_PASSWORD };
    await logIn(system.baseUrl, "backoffice", owner);
  });

  it.each(["BASE_URL", "PLATFORM_KEY", "OWNER_PASSWORD", "CASHIER_PASSWORD"])(
    "without %s: ends before it creates anything",
    async (name) => {
      const done = await runScript("unset.example", { ...passwords, [name]: "" });
      expect([done.code === 0, done.out.includes(name)]).toEqual([false, true]);
      const unknown = { email: "owner@unset.example" };
      const reset = await send(system.baseUrl, "POST", "/api/platform/v1/owner-passwords/", {
        json: unknown,
        token: PLATFORM_KEY,
      });
      expect(reset.status).toBe(404);
    },
  );

  it("an invalid new password: the initial one is printed; a reset shows another one", async () => {
    const done = await runScript("short.example", { ...passwords, OWNER_PASSWORD: "short" });
    expect(done.code).not.toBe(0);
    const email = "owner@short.example";
    const password = new RegExp(`^The initial password of ${email}: (\\S+)$`, "m").exec(done.out)?.[1] ?? "";
    await logIn(system.baseUrl, "backoffice", { email, password });
    const reset = await command(["reset-password", "--owner-email", email]);
    expect(reset.code, reset.out).toBe(0);
    const shown = /the initial password (\S+)$/m.exec(reset.out)?.[1] ?? "";
    expect(shown).not.toBe(password);
    await logIn(system.baseUrl, "backoffice", { email, password: shown });
  });
});

describe("the command for organizations", () => {
  it("create and list with --json: print JSON", async () => {
    const made = await command(["create", "--name", "Quay", "--owner-email", "quay@harbour.example", "--json"]);
    expect(made.code).toBe(0);
    const { organization, owner, initial_password: password } = JSON.parse(made.out) as Created;
    await logIn(system.baseUrl, "backoffice", { email: owner.email, password: password ?? "" });
    const listed = await command(["list", "--json"]);
    const { organizations } = JSON.parse(listed.out) as z.infer<typeof organizationsSchema>;
    expect(organizations).toContainEqual(organization);
  });

  it("exit codes: 0 with help, 2 for wrong arguments, 1 for a refusal or no connection, each with one sentence", async () => {
    const help = await command(["--help"]);
    expect([help.code, help.out.includes("--owner-email")]).toEqual([0, true]);
    for (const args of [[], ["create", "--name", "Quay"], ["remove"], ["reset-password"], ["list", "--nothing"]])
      expect((await command(args)).code).toBe(2);
    const again = ["create", "--name", "Quay", "--owner-email", system.owner.email];
    expect(await command(again)).toMatchObject({ code: 1, out: expect.stringContaining("(already_exists)") });
    expect((await command(["list"], { PLATFORM_KEY: "wrong" })).code).toBe(1);
    expect((await command(["list", "--base-url", "http://127.0.0.1:9"])).code).toBe(1);
    expect((await command(["list"], { PLATFORM_KEY: "", DATA_DIR: "/nowhere" })).out).toContain("Set PLATFORM_KEY");
  });
});
