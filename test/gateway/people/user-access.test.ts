/** People's access over HTTP: a change by the owner or by the person takes effect at every gateway within a second. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { userSchema, usersSchema } from "../../../gateway/api/backoffice/users.ts";
import { FEED_LIMITS } from "../../../gateway/read-model/replica-feed.ts";
import { type Refused, send } from "../../support/http.ts";
import { logIn, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { LogIn, TestSystem } from "../../support/system.ts";
import { type GatewayProcess, startGatewayProcess } from "../gateway-process.ts";

type User = z.infer<typeof userSchema>;

let system: TestSystem;
let second: GatewayProcess;
let owner: Person;
beforeAll(async () => {
  system = await sharedSystem();
  second = await startGatewayProcess(system.nats.url);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(async () => {
  await second.stop();
  await system.stop();
});

let people = 0;
async function newCashier(): Promise<{ user: User; details: LogIn }> {
  const details = { email: `cashier-${(people += 1)}@sandbox.example`, password: "the first password" };
  const user = await owner.good<User>("POST", "users/", { body: { ...details, name: "Carl", role: "cashier" } });
  return { user, details };
}

const read = (baseUrl: string, token: string) => send<Refused>(baseUrl, "GET", "/api/cashier/v1/session/", { token });
const open = (details: LogIn) => send<Refused>(system.baseUrl, "POST", "/api/cashier/v1/session/", { json: details });

/** Polls until this gateway refuses the session. Returns how long after `sinceMs` that was. */
async function refusedAfterMs(baseUrl: string, token: string, sinceMs: number): Promise<number> {
  for (;;) {
    const { status, body } = await read(baseUrl, token);
    const afterMs = performance.now() - sinceMs;
    if (status === 401) {
      expect(body.code).toBe("session_invalid");
      return afterMs;
    }
    expect(afterMs, "the session is still open").toBeLessThan(10 * FEED_LIMITS.silenceMs);
  }
}

describe("the end of a person's sessions", () => {
  it.each([
    ["a suspension", (id: number) => owner.good("POST", `users/${id}/suspend/`)],
    [
      "a new password from the owner",
      (id: number) => owner.good("PUT", `users/${id}/password/`, { body: { password: "a second password" } }),
    ],
  ])("%s: ends them at every gateway, within the lag of a replica", async (_what, act) => {
    const { user, details } = await newCashier();
    const tokens = [
      (await logIn(system.baseUrl, "cashier", details)).token,
      (await logIn(second.baseUrl, "cashier", details)).token,
    ];
    for (const token of tokens) expect((await read(second.baseUrl, token)).status).toBe(200);
    const startedMs = performance.now();
    await act(user.user_id);
    // The gateway that has answered the change refuses the session at once.
    expect((await read(system.baseUrl, tokens[1] as string)).status).toBe(401);
    for (const token of tokens) {
      expect(await refusedAfterMs(second.baseUrl, token, startedMs)).toBeLessThan(FEED_LIMITS.silenceMs);
    }
  });
});

describe("the suspension of a person", () => {
  it("a suspended person: listed as suspended, and cannot log in; a resumed one can log in again", async () => {
    const { user, details } = await newCashier();
    expect(await owner.good<User>("POST", `users/${user.user_id}/suspend/`)).toEqual({ ...user, status: "suspended" });
    const { users } = await owner.good<z.infer<typeof usersSchema>>(
      "GET",
      `users/?since_id=${user.user_id - 1}&limit=1`,
    );
    expect(users).toEqual([{ ...user, status: "suspended" }]);
    expect(await open(details)).toMatchObject({ status: 403, body: { code: "permission_denied" } });
    expect(await owner.good<User>("POST", `users/${user.user_id}/resume/`)).toEqual(user);
    expect((await open(details)).status).toBe(200);
  });

  it("an owner's request about that owner: neither a suspension nor a new password is possible", async () => {
    expect((await owner.refused("conflict", "POST", `users/${owner.userId}/suspend/`)).status).toBe(409);
    const body = { password: "a second password" };
    expect((await owner.refused("conflict", "PUT", `users/${owner.userId}/password/`, { body })).status).toBe(409);
  });
});

describe("the change of a person's password", () => {
  const NEW = "a second password";

  it("with the old password: changed; the other sessions end, and this one stays", async () => {
    const { details } = await newCashier();
    const mine = await logIn(system.baseUrl, "cashier", details);
    const other = await logIn(second.baseUrl, "cashier", details);
    const body = { old_password: details.password, new_password: NEW };
    expect((await mine.call("PUT", "session/password/", { body })).status).toBe(204);
    expect((await read(system.baseUrl, other.token)).status).toBe(401);
    await refusedAfterMs(second.baseUrl, other.token, performance.now());
    expect((await read(system.baseUrl, mine.token)).status).toBe(200);
    expect((await read(second.baseUrl, mine.token)).status).toBe(200);
    expect((await open(details)).status).toBe(401);
    expect((await open({ ...details, password: NEW })).status).toBe(200);
  });

  it("a wrong old password, or a new one that is too short: refused, and the password stays", async () => {
    const { details } = await newCashier();
    const person = await logIn(system.baseUrl, "cashier", details);
    const wrong = { old_password: "not the password", new_password: NEW };
    const answer = await person.refused("invalid_request", "PUT", "session/password/", { body: wrong });
    expect([answer.status, answer.body.errors?.map(({ pointer }) => pointer)]).toEqual([400, ["/old_password"]]);
    const short = { old_password: details.password, new_password: "short" };
    const refused = await person.refused("invalid_request", "PUT", "session/password/", { body: short });
    expect(refused.body.errors?.map(({ pointer }) => pointer)).toEqual(["/new_password"]);
    expect((await open(details)).status).toBe(200);
  });

  it("a page of another site: refused", async () => {
    const { details } = await newCashier();
    const { token } = await logIn(system.baseUrl, "cashier", details);
    const headers = { cookie: `dp_session=${token}`, origin: "https://elsewhere.example" };
    const json = { old_password: details.password, new_password: NEW };
    const answer = await send(system.baseUrl, "PUT", "/api/cashier/v1/session/password/", { headers, json });
    expect(answer).toMatchObject({ status: 403, body: { code: "csrf_refused" } });
  });
});
