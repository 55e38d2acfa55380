/** The throttle of log-ins: it stops guesses, and it does not lock out a person who has logged in before. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BOUNDS } from "../../services/bus/bounds.ts";
import * as sessions from "../../services/bus/messages/sessions.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { createDatabaseShares } from "../../services/registry/database-shares.ts";
import type { RegistryDeps } from "../../services/registry/deps.ts";
import { LOGIN_LIMITS, REGISTRY_LIMITS } from "../../services/registry/limits.ts";
import { createLoginThrottle, type LoginAttempt, type LoginThrottle } from "../../services/registry/login-throttle.ts";
import type { Passwords } from "../../services/registry/passwords.ts";
import { registryRetention } from "../../services/registry/retention.ts";
import { hashSecret } from "../../services/registry/secrets.ts";
import { startRegistryService } from "../../services/registry/service.ts";
import * as handlers from "../../services/registry/sessions.ts";
import { removeExpired } from "../../services/runtime/retention.ts";
import { OWNER_PASSWORD, type RegistryFixture, refusalOf, startRegistry } from "./registry-fixture.ts";

let fixture: RegistryFixture;
let throttle: LoginThrottle;
beforeAll(async () => {
  fixture = await startRegistry();
  throttle = createLoginThrottle(fixture.sql);
});
afterAll(() => fixture.stop());

const OWNER = "owner@sandbox.example";
let addresses = 0;
/** An address that nothing has used yet. */
const newAddress = (): string => {
  addresses += 1;
  return `198.18.${addresses >> 8}.${addresses & 255}`;
};
let people = 0;

interface TestPerson {
  readonly email: string;
  readonly password: string;
  readonly userId: number;
}

/** A cashier without a known address. The password hash is the owner's, because hashing takes long. */
async function newPerson(): Promise<TestPerson> {
  people += 1;
  const email = `person-${people}@sandbox.example`;
  const [row] = await fixture.sql<[{ user_id: number }]>`
    insert into users (organization_id, email, name, role, password_hash)
    select organization_id, ${email}, 'A person', 'cashier', password_hash from users where email = ${OWNER}
    returning user_id`;
  return { email, password: OWNER_PASSWORD, userId: row.user_id };
}

const logIn = (email: string, password: string, address: string) =>
  fixture.ask(sessions.logIn, {
    email,
    password,
    address,
    permission: email === OWNER ? "organization.manage" : "payments.collect",
  });
const codeOf = async (email: string, password: string, address: string): Promise<string> =>
  logIn(email, password, address).then(
    () => "ok",
    async (error: unknown) => (await refusalOf(Promise.reject(error))).code,
  );
const codeOfTry = (tried: Promise<unknown>): Promise<string> =>
  tried.then(
    () => "counted",
    async (error: unknown) => (await refusalOf(Promise.reject(error))).code,
  );
/** The throttle's results for some attempts. It skips the checks of passwords, which take long. */
async function attempts(count: number, of: (index: number) => Partial<LoginAttempt>): Promise<string[]> {
  const codes: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const attempt = { email: "any-user@sandbox.example", address: "192.0.2.1", isKnownAddress: false, ...of(index) };
    codes.push(await codeOfTry(throttle.consume(attempt)));
  }
  return codes;
}
const countOf = (codes: readonly string[], code: string): number => codes.filter((one) => one === code).length;
/** Uses up the account's budget for unknown addresses: one guess from each of many addresses. */
const guessFromEverywhere = (email: string): Promise<string[]> =>
  attempts(LOGIN_LIMITS.perAccount.attempts, () => ({ email, address: newAddress() }));

describe("guesses at passwords", () => {
  test("one account, one address: stopped across two processes, while other addresses can still log in", async () => {
    const second = await startRegistryService(fixture.serviceDeps);
    try {
      const address = newAddress();
      for (let index = 0; index < LOGIN_LIMITS.perAccountAndAddress.attempts; index += 1) {
        expect(await refusalOf(logIn("guessed@sandbox.example", "wrong", address))).toEqual({ code: "login_failed" });
      }
      const refusal = await refusalOf(logIn("guessed@sandbox.example", "wrong", address));
      expect(refusal.code).toBe("login_throttled");
      expect(refusal.retryAfterMs).toBeGreaterThan(0);
      expect(refusal.retryAfterMs).toBeLessThanOrEqual(LOGIN_LIMITS.perAccountAndAddress.windowSeconds * 1_000);
      // Another spelling of the e-mail address has the same budget.
      expect((await refusalOf(logIn(" GUESSED@sandbox.example", "wrong", address))).code).toBe("login_throttled");
      expect((await refusalOf(logIn("guessed@sandbox.example", "wrong", newAddress()))).code).toBe("login_failed");
    } finally {
      await second.stop();
    }
  });

  test("many accounts, one address: stopped", async () => {
    const address = newAddress();
    const { attempts: most } = LOGIN_LIMITS.perAddress;
    const codes = await attempts(most + 5, (index) => ({ email: `unknown-${index}@sandbox.example`, address }));
    expect(codes).toEqual([...Array<string>(most).fill("counted"), ...Array<string>(5).fill("login_throttled")]);
    expect(await codeOf("unknown@sandbox.example", "wrong", address)).toBe("login_throttled");
  });

  test("many addresses of one IPv6 /64: stopped as one address", async () => {
    const codes = await attempts(2 * LOGIN_LIMITS.perAddress.attempts, (index) => ({
      email: `somewhere-${index}@sandbox.example`,
      address: `2001:db8:0:7::${index.toString(16)}`,
    }));
    expect(countOf(codes, "counted")).toBe(LOGIN_LIMITS.perAddress.attempts);
    expect(await codeOf("somewhere@sandbox.example", "wrong", "2001:db8:0:7:f:f:f:f")).toBe("login_throttled");
    expect(await codeOf("somewhere@sandbox.example", "wrong", "2001:db8:0:8::1")).toBe("login_failed");
  });

  test("an IPv4 address that is also written as IPv6: stopped as one address", async () => {
    const address = newAddress();
    const email = "mapped@sandbox.example";
    const { attempts: most } = LOGIN_LIMITS.perAccountAndAddress;
    const codes = await attempts(most + 1, (index) => ({
      email,
      address: index % 2 === 0 ? address : `::ffff:${address}`,
    }));
    expect(countOf(codes, "counted")).toBe(most);
  });

  test("one account, many addresses: stopped in the same way for existing and unknown accounts", async () => {
    const { email, password } = await newPerson();
    for (const guessed of [email, "spread@nowhere.example"]) {
      expect(new Set(await guessFromEverywhere(guessed))).toEqual(new Set(["counted"]));
      const refusal = await refusalOf(logIn(guessed, password, newAddress()));
      expect(refusal).toEqual({ code: "login_throttled", retryAfterMs: expect.any(Number) });
      expect(refusal.retryAfterMs).toBeLessThanOrEqual(LOGIN_LIMITS.perAccount.windowSeconds * 1_000);
    }
  });
});

describe("a person at an address where they have logged in before", () => {
  test("others guess at the account from everywhere: the person can log in", async () => {
    const { email, password } = await newPerson();
    const home = newAddress();
    await logIn(email, password, home);
    await guessFromEverywhere(email);
    expect(await codeOf(email, password, newAddress())).toBe("login_throttled");
    expect(await codeOf(email, "mistyped", home)).toBe("login_failed");
    expect(await codeOf(email, password, home)).toBe("ok");
  });

  test("another address of the same /64: the person can log in there too", async () => {
    const { email, password } = await newPerson();
    await logIn(email, password, "2001:db8:1:1::1");
    await guessFromEverywhere(email);
    expect(await codeOf(email, password, "2001:db8:1:1:a:b:c:d")).toBe("ok");
    expect(await codeOf(email, password, "2001:db8:1:2::1")).toBe("login_throttled");
  });

  test("others guess at other accounts from the same address: the person can log in", async () => {
    const { email, password } = await newPerson();
    const restaurant = newAddress();
    await logIn(email, password, restaurant);
    await attempts(LOGIN_LIMITS.perAddress.attempts, (index) => ({
      email: `guest-${index}@sandbox.example`,
      address: restaurant,
    }));
    expect(await codeOf("guest@sandbox.example", "wrong", restaurant)).toBe("login_throttled");
    expect(await codeOf(email, password, restaurant)).toBe("ok");
  });

  test("wrong passwords: a separate budget; the budget for unknown addresses is not used", async () => {
    const { email, password } = await newPerson();
    const home = newAddress();
    await logIn(email, password, home);
    for (let index = 1; index < LOGIN_LIMITS.perAccountAndAddress.attempts; index += 1)
      await throttle.consume({ email, address: home, isKnownAddress: true });
    expect(await codeOf(email, "wrong", home)).toBe("login_failed");
    expect(await codeOf(email, password, home)).toBe("login_throttled");
    expect(new Set(await guessFromEverywhere(email))).toEqual(new Set(["counted"]));
  });

  test("a script that logs in repeatedly with the right password: limited", async () => {
    const attempt = { email: "looping@sandbox.example", address: newAddress(), isKnownAddress: true };
    for (let index = 0; index < LOGIN_LIMITS.perKnownAddress.attempts; index += 1) {
      await throttle.consume(attempt);
      await throttle.succeeded(attempt);
    }
    expect((await refusalOf(throttle.consume(attempt))).code).toBe("login_throttled");
  });

  test("a log-in that succeeds: all attempts are available again", async () => {
    const { email, password } = await newPerson();
    const address = newAddress();
    const { attempts: most } = LOGIN_LIMITS.perAccountAndAddress;
    for (let round = 0; round < 3; round += 1) {
      const isKnownAddress = round > 0;
      const codes = await attempts(most - 1, () => ({ email, address, isKnownAddress }));
      expect(countOf(codes, "counted")).toBe(most - 1);
      expect(await codeOf(email, password, address)).toBe("ok");
    }
  });

  test("known addresses: forgotten after a time, and above a number, the newest ones stay", async () => {
    const { email, password, userId } = await newPerson();
    const first = newAddress();
    await logIn(email, password, first);
    // So many log-ins would take minutes, so the test writes their rows.
    await fixture.sql`
      insert into known_addresses (user_id, address_hash, last_login_at)
      select ${userId}, sha256(number::text::bytea), now() - number * interval '1 minute'
      from generate_series(1, ${REGISTRY_LIMITS.knownAddressesPerUser}::int) number`;
    await fixture.sql`
      update known_addresses set last_login_at = now() - interval '1 day'
      where user_id = ${userId} and last_login_at = (select max(last_login_at) from known_addresses where user_id = ${userId})`;
    const newest = newAddress();
    await logIn(email, password, newest);
    expect(await fixture.sql`select from known_addresses where user_id = ${userId}`).toHaveLength(
      REGISTRY_LIMITS.knownAddressesPerUser,
    );
    await guessFromEverywhere(email);
    expect(await codeOf(email, password, first)).toBe("login_throttled");
    expect(await codeOf(email, password, newest)).toBe("ok");
    await fixture.sql`
      update known_addresses set last_login_at = now() - ${REGISTRY_LIMITS.knownAddressDays}::int * interval '1 day'
      where user_id = ${userId}`;
    expect(await codeOf(email, password, newest)).toBe("login_throttled");
  });
});

describe("a person in a browser where they have logged in before", () => {
  const permission = "payments.collect";
  const inBrowser = (email: string, password: string, address: string, ...browserTokens: string[]) =>
    fixture.ask(sessions.logIn, { email, password, address, permission, browserTokens });
  const codeIn = (...attempt: Parameters<typeof inBrowser>): Promise<string> =>
    codeOfTry(inBrowser(...attempt)).then((code) => (code === "counted" ? "ok" : code));
  const budget = LOGIN_LIMITS.perAccountAndAddress.attempts;

  test("others use up every other budget, also that of the known address: the person can log in", async () => {
    const { email, password } = await newPerson();
    const restaurant = newAddress();
    const { browserToken } = await inBrowser(email, password, restaurant);
    await attempts(budget, () => ({ email, address: restaurant, isKnownAddress: true }));
    await guessFromEverywhere(email);
    expect(await codeOf(email, password, restaurant)).toBe("login_throttled");
    expect(await codeIn(email, "mistyped", restaurant, browserToken)).toBe("login_failed");
    expect(await codeIn(email, password, restaurant, browserToken)).toBe("ok");
    const elsewhere = await inBrowser(email, password, newAddress(), "another person's", browserToken);
    expect(elsewhere.browserToken, "is known further").toBe(browserToken);
  });

  test("wrong passwords: a budget of this browser; once it is used up, the browser is forgotten", async () => {
    const { email, password, userId } = await newPerson();
    const home = newAddress();
    const { browserToken } = await inBrowser(email, password, home);
    const browserHash = hashSecret(browserToken);
    await attempts(budget - 2, () => ({ email, isKnownAddress: true, browserHash }));
    expect(await codeIn(email, "wrong", home, browserToken)).toBe("login_failed");
    expect(await browsersOf(userId)).toBe(1);
    expect(await codeIn(email, "wrong", home, browserToken)).toBe("login_failed");
    expect(await browsersOf(userId)).toBe(0);
    // From here on, the browser counts by its address. These attempts have not used the budget of that address.
    expect(await codeIn(email, "wrong", home, browserToken)).toBe("login_failed");
    const fresh = await inBrowser(email, password, home, browserToken);
    expect(fresh.browserToken).not.toBe(browserToken);
  });

  test("a browser in which a script logs in repeatedly with the right password: limited", async () => {
    const attempt = { email: "scripted@sandbox.example", address: newAddress(), isKnownAddress: false };
    const browserHash = hashSecret("a script's browser");
    for (let index = 0; index < LOGIN_LIMITS.perKnownAddress.attempts; index += 1) {
      await throttle.consume({ ...attempt, browserHash });
      await throttle.succeeded({ ...attempt, browserHash });
    }
    expect((await refusalOf(throttle.consume({ ...attempt, browserHash }))).code).toBe("login_throttled");
  });

  test("another account's browser, or an invented one: not known", async () => {
    const [person, other] = [await newPerson(), await newPerson()];
    const { browserToken } = await inBrowser(other.email, other.password, newAddress());
    await guessFromEverywhere(person.email);
    for (const token of [browserToken, "invented"])
      expect(await codeIn(person.email, person.password, newAddress(), token)).toBe("login_throttled");
  });

  test("known browsers: forgotten after a time, and above a number, the newest ones stay", async () => {
    const { email, password, userId } = await newPerson();
    const home = newAddress();
    const { browserToken: first } = await inBrowser(email, password, home);
    await fixture.sql`update known_browsers set last_login_at = now() - interval '1 day' where user_id = ${userId}`;
    await fixture.sql`
      insert into known_browsers (user_id, token_hash)
      select ${userId}, sha256(number::text::bytea)
      from generate_series(1, ${REGISTRY_LIMITS.knownBrowsersPerUser - 1}::int) number`;
    const { browserToken: newest } = await inBrowser(email, password, home);
    expect(await browsersOf(userId)).toBe(REGISTRY_LIMITS.knownBrowsersPerUser);
    await guessFromEverywhere(email);
    expect(await codeIn(email, password, newAddress(), first)).toBe("login_throttled");
    expect(await codeIn(email, password, newAddress(), newest)).toBe("ok");
    await fixture.sql`
      update known_browsers set last_login_at = now() - ${BOUNDS.knownBrowserDays}::int * interval '1 day'
      where user_id = ${userId}`;
    expect(await codeIn(email, password, newAddress(), newest)).toBe("login_throttled");
    await removeExpired(registryRetention(fixture.sql), fixture.serviceDeps.log);
    expect(await browsersOf(userId)).toBe(0);
  });

  async function browsersOf(userId: number): Promise<number> {
    return (await fixture.sql`select from known_browsers where user_id = ${userId}`).length;
  }
});

describe("a password change by a person with a valid session", () => {
  test("others guess at the account from everywhere, and from the same address: the change succeeds", async () => {
    const person = await newPerson();
    const address = newAddress();
    const { token, caller, sessionId } = await openSession(person, address);
    expect(token).toMatch(/^dps_/);
    await guessFromEverywhere(person.email);
    const elsewhere = newAddress();
    await attempts(LOGIN_LIMITS.perAddress.attempts, (index) => ({
      email: `at-${index}@sandbox.example`,
      address: elsewhere,
    }));
    const request = { caller, sessionId, address: elsewhere, newPassword: "another good password" };
    const wrong = await refusalOf(fixture.ask(sessions.changePassword, { ...request, oldPassword: "wrong" }));
    expect(wrong.code).toBe("invalid_request");
    await fixture.ask(sessions.changePassword, { ...request, oldPassword: person.password });
  });

  test("guesses at the old password: stopped, from any address", async () => {
    const person = await newPerson();
    const { caller, sessionId } = await openSession(person, newAddress());
    const guess = async (oldPassword: string): Promise<string> => {
      const request = { caller, sessionId, address: newAddress(), newPassword: "another good password" };
      return (await refusalOf(fixture.ask(sessions.changePassword, { ...request, oldPassword }))).code;
    };
    expect(await guess("wrong")).toBe("invalid_request");
    for (let index = 1; index < LOGIN_LIMITS.perSession.attempts; index += 1)
      await throttle.consumeOfSession(sessionId);
    expect(await guess(person.password)).toBe("login_throttled");
  });

  async function openSession(person: TestPerson, address: string) {
    const { token } = await logIn(person.email, person.password, address);
    const [row] = await fixture.sql<[{ session_id: number }]>`
      select session_id from sessions where user_id = ${person.userId} order by session_id desc limit 1`;
    const caller = { ...fixture.cashier, userId: person.userId };
    return { token, caller, sessionId: row.session_id };
  }
});

describe("a flood of wrong passwords", () => {
  test("from many addresses: a person at a known address can log in during the flood", async () => {
    const { email, password } = await newPerson();
    const home = newAddress();
    await logIn(email, password, home);
    const flood = Array.from({ length: 200 }, (_, index) =>
      codeOf(`flooded-${index}@sandbox.example`, "wrong", newAddress()),
    );
    expect(await codeOf(email, password, home)).toBe("ok");
    const codes = new Set(await Promise.all(flood));
    expect(codes).toEqual(new Set(["login_failed", "busy"]));
  });

  test("from one address: a person at an unknown address can log in during the flood", async () => {
    const { email, password } = await newPerson();
    const flooding = newAddress();
    const flood = Array.from({ length: 200 }, (_, index) =>
      codeOf(`drowned-${index}@sandbox.example`, "wrong", flooding),
    );
    expect(await codeOf(email, password, newAddress())).toBe("ok");
    await Promise.all(flood);
  });

  test("an attempt without a place at the password checks: does not count", async () => {
    const { email } = await newPerson();
    const full: Passwords = { hold: () => Promise.reject(new RefusedError({ code: "busy" })) };
    const { log } = fixture.serviceDeps;
    const deps = {
      sql: fixture.sql,
      shares: createDatabaseShares(),
      log,
      settings: {},
      passwords: full,
      loginThrottle: throttle,
    } as unknown as RegistryDeps;
    const request = { email, password: "wrong", permission: "payments.collect" } as const;
    const countRows = async (): Promise<number> => (await fixture.sql`select from login_attempts`).length;
    const before = await countRows();
    expect(await codeOfTry(handlers.logIn(deps, { ...request, address: newAddress() }, async () => undefined))).toBe(
      "busy",
    );
    expect(await countRows()).toBe(before);
  });
});

test("stored attempts and known addresses: show no address and no person, and are deleted after their retention", async () => {
  const { email, password, userId } = await newPerson();
  await refusalOf(logIn("private@sandbox.example", "wrong", "2001:db8::1"));
  await logIn(email, password, "203.0.113.77");
  const stored = await fixture.sql<{ text: string }[]>`
    select key as text from login_attempts union all select known_addresses::text from known_addresses`;
  expect(stored.map(({ text }) => text).join("\n")).not.toMatch(/private|person|2001|203\.0\.113/);
  await fixture.sql`update login_attempts set expire = extract(epoch from now()) * 1000 - 1`;
  await fixture.sql`
    update known_addresses set last_login_at = now() - ${REGISTRY_LIMITS.knownAddressDays}::int * interval '1 day'
    where user_id = ${userId}`;
  await removeExpired(registryRetention(fixture.sql), fixture.serviceDeps.log);
  expect(await fixture.sql`select from login_attempts`).toHaveLength(0);
  expect(await fixture.sql`select from known_addresses where user_id = ${userId}`).toHaveLength(0);
});
