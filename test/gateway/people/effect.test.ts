/**
 * The relay delivers changes to gateways and stations. While the relay is stopped, the answer to a change states that it is
 * stored and not yet effective. The rows come from the route table, so that no route is left out.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Route } from "../../../gateway/http/route.ts";
import { routes } from "../../../gateway/routes.ts";
import { createLoginLink } from "../../../services/bus/messages/login-links.ts";
import { call } from "../../../services/bus/operation.ts";
import { closeDatabase, type Database, openDatabase } from "../../../services/db/pool.ts";
import { newCode } from "../../support/devices.ts";
import { emvcoSettings } from "../../support/emvco-settings.ts";
import { type Answer, send } from "../../support/http.ts";
import { logIn, type Person } from "../../support/people.ts";
import { metricSum, scrape } from "../../support/scrape.ts";
import { type LogIn, startSystem, type TestSystem } from "../../support/system.ts";

const PLATFORM_KEY = "platform-key-of-the-test-of-effects";
const PASSWORD = "a long enough password";
/** How many requests wait at once. Each waits for two seconds; with more, the last ones would also wait for the database. */
const AT_ONCE = 12;
const LINES = { lines: [{ name: "Soup", quantity: 1, unit_amount: "12.50" }] };

/** One request of a route; `ids` are the ids in its path. */
interface TestRequest {
  readonly ids?: Readonly<Record<string, number>>;
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly key?: string;
}

let system: TestSystem;
let database: Database;
let owner: Person;
let cashier: Person;
let filialId: number;
/** The station for new devices and orders. It has room for the devices of one round. */
let stationId: number;
/** The owner of another organization, so that a freeze of that organization affects no other row. */
let secondOwner: Person;
let made = 0;
beforeAll(async () => {
  const environment = { PLATFORM_KEY, METRICS_PORT: "0" };
  system = await startSystem({ environment, relayApart: true });
  database = openDatabase({ url: system.database.url, maxConnections: 1 });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  filialId = await newFilial();
  const details = { email: "second@restaurant.example", password: PASSWORD };
  const json = { name: "Second", owner: { ...details, name: "Second owner" } };
  await send(system.baseUrl, "POST", "/api/platform/v1/organizations/", { token: PLATFORM_KEY, json });
  secondOwner = await logIn(system.baseUrl, "backoffice", details);
});
afterAll(async () => {
  await closeDatabase(database);
  await system.stop();
});

const FLAGGED = routes.filter(({ awaitsEffect }) => awaitsEffect === true);
const name = (): string => `Number ${++made}`;

async function newFilial(): Promise<number> {
  return (await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name: name() } })).filial_id;
}
async function newStation(filial_id = filialId): Promise<number> {
  const body = { filial_id, name: name(), currency: "EUR" };
  return (await owner.good<{ station_id: number }>("POST", "stations/", { body })).station_id;
}
async function newDevice(): Promise<number> {
  const body = { station_id: stationId, name: name(), kind: "customer_display" };
  return (await owner.good<{ device_id: number }>("POST", "devices/", { body })).device_id;
}
async function newActiveDevice(): Promise<number> {
  const deviceId = await newDevice();
  const json = { code: await newCode(owner, deviceId) };
  await send(system.baseUrl, "POST", "/api/payments/v1/devices/enroll/", { json });
  return deviceId;
}
async function newPerson(role: string): Promise<{ readonly details: LogIn; readonly userId: number }> {
  const details = { email: `person-${++made}@sandbox.example`, password: PASSWORD };
  const body = { ...details, name: name(), role };
  const { user_id } = await owner.good<{ user_id: number }>("POST", "users/", { body });
  return { details, userId: user_id };
}
/** A person who is logged in, so that the end of this person's access has an effect. */
async function newSession(api: Api): Promise<{ readonly token: string; readonly userId: number }> {
  const { details, userId } = await newPerson(ROLES[api]);
  const { token } = await logIn(system.baseUrl, api, details);
  return { token, userId };
}
async function newConfigBody() {
  const filial_id = await newFilial();
  await newStation(filial_id);
  return { filial_id, kind: "emvco_generic", mode: "test", name: name(), settings: emvcoSettings(`M-${++made}`) };
}
async function newConfig(): Promise<number> {
  const body = await newConfigBody();
  return (await owner.good<{ provider_config: { config_id: number } }>("POST", "provider-configs/", { body }))
    .provider_config.config_id;
}
/** The filial has a test config, so that no provider must create one. */
async function newSandboxBody() {
  const body = await newConfigBody();
  await owner.good("POST", "provider-configs/", { body });
  return { filial_id: body.filial_id, name: name(), currency: "EUR" };
}
const newSandbox = async (): Promise<number> =>
  (await owner.good<{ sandbox_id: number }>("POST", "sandboxes/", { body: await newSandboxBody() })).sandbox_id;
async function newOrder(): Promise<number> {
  const path = `stations/${stationId}/orders/`;
  return (await cashier.good<{ order_id: number }>("POST", path, { body: LINES })).order_id;
}

const moved = (prefix: "devices" | "stations" | "users", id: number, move: string) =>
  owner.good("POST", `${prefix}/${id}/${move}/`);
const device = (id: number): TestRequest => ({ ids: { device_id: id } });
const station = (id: number): TestRequest => ({ ids: { station_id: id } });
const user = (id: number): TestRequest => ({ ids: { user_id: id } });
const reason = { reason: "A drill" };
const ROLES = { cashier: "cashier", backoffice: "owner", reconciliation: "reconciliation_operator" } as const;
type Api = keyof typeof ROLES;

const sessionRows = (api: Api): Record<string, () => Promise<TestRequest>> => ({
  [`${api}_log_in`]: async () => ({ body: (await newPerson(ROLES[api])).details }),
  [`${api}_log_out`]: async () => ({ token: (await newSession(api)).token }),
  [`${api}_change_password`]: async () => {
    const { details } = await newPerson(ROLES[api]);
    // The change of the password ends this first session.
    await logIn(system.baseUrl, api, details);
    const { token } = await logIn(system.baseUrl, api, details);
    return { token, body: { old_password: PASSWORD, new_password: "another long enough password" } };
  },
});

/** A request of each row. No other row uses its objects. */
const REQUESTS: Readonly<Record<string, () => Promise<TestRequest>>> = {
  ...sessionRows("backoffice"),
  ...sessionRows("cashier"),
  ...sessionRows("reconciliation"),
  start_log_in_by_link: async () => {
    const { organizationId, stations } = system.sandbox;
    const link = { organizationId, stationId: stations[1]?.stationId ?? 0 };
    return { body: { token: (await call(system.bus.nc, createLoginLink, link)).token } };
  },
  payments_device_enroll: async () => ({ body: { code: await newCode(owner, await newDevice()) } }),
  backoffice_register_device: async () => ({
    body: { station_id: stationId, name: name(), kind: "customer_display" },
  }),
  backoffice_change_device: async () => ({ ...device(await newDevice()), body: { name: name() } }),
  backoffice_suspend_device: async () => device(await newActiveDevice()),
  backoffice_resume_device: async () => {
    const id = await newActiveDevice();
    await moved("devices", id, "suspend");
    return device(id);
  },
  backoffice_reset_device: async () => device(await newDevice()),
  backoffice_revoke_device: async () => device(await newDevice()),
  backoffice_seed_sandbox: async () => ({ body: await newSandboxBody() }),
  backoffice_reset_sandbox: async () => ({ ids: { sandbox_id: await newSandbox() } }),
  backoffice_delete_sandbox: async () => ({ ids: { sandbox_id: await newSandbox() } }),
  backoffice_create_station: async () => ({ body: { filial_id: filialId, name: name(), currency: "EUR" } }),
  backoffice_rename_station: async () => ({ ...station(await newStation()), body: { name: name() } }),
  backoffice_suspend_station: async () => station(await newStation()),
  backoffice_resume_station: async () => {
    const id = await newStation();
    await moved("stations", id, "suspend");
    return station(id);
  },
  backoffice_close_station: async () => station(await newStation()),
  backoffice_change_user: async () => ({
    ...user((await newSession("cashier")).userId),
    body: { role: "reconciliation_operator" },
  }),
  backoffice_suspend_user: async () => user((await newSession("cashier")).userId),
  backoffice_resume_user: async () => {
    const { userId } = await newPerson("cashier");
    await moved("users", userId, "suspend");
    return user(userId);
  },
  backoffice_reset_user_password: async () => ({
    ...user((await newSession("cashier")).userId),
    body: { password: "another long enough password" },
  }),
  backoffice_freeze_organization: async () => ({ token: secondOwner.token, body: reason }),
  backoffice_unfreeze_organization: async () => ({ token: secondOwner.token, body: reason }),
  backoffice_freeze_station: async () => ({ ...station(await newStation()), body: reason }),
  backoffice_unfreeze_station: async () => frozen(station(await newStation()), "stations"),
  backoffice_freeze_device: async () => ({ ...device(await newDevice()), body: reason }),
  backoffice_unfreeze_device: async () => frozen(device(await newDevice()), "devices"),
  backoffice_freeze_provider: async () => ({ ids: { config_id: await newConfig() }, body: reason }),
  backoffice_unfreeze_provider: async () => frozen({ ids: { config_id: await newConfig() } }, "provider-configs"),
  platform_freeze_platform: async () => ({ token: PLATFORM_KEY, body: { ...reason, by: "Night shift" } }),
  platform_unfreeze_platform: async () => ({ token: PLATFORM_KEY, body: { ...reason, by: "Night shift" } }),
  platform_reset_owner_password: async () => {
    const { details } = await newPerson("owner");
    await logIn(system.baseUrl, "backoffice", details);
    return { token: PLATFORM_KEY, body: { email: details.email } };
  },
  backoffice_create_provider_config: async () => ({ body: await newConfigBody() }),
  backoffice_change_provider_config: async () => ({
    ids: { config_id: await newConfig() },
    body: { status: "disabled" },
  }),
  cashier_open_order: async () => ({ ...station(stationId), body: LINES, key: name() }),
  cashier_change_order: async () => ({
    ids: { order_id: await newOrder() },
    body: { lines: [{ name: "Tea", quantity: 2, unit_amount: "3.10" }] },
  }),
  cashier_void_order: async () => ({ ids: { order_id: await newOrder() } }),
};

async function frozen(request: TestRequest, prefix: string): Promise<TestRequest> {
  const [id] = Object.values(request.ids ?? {});
  await owner.good("POST", `${prefix}/${id}/freeze/`, { body: reason });
  return { ...request, body: reason };
}

/** The status of a repetition when the first request has used up what a repetition needs. */
const USED_UP: Readonly<Record<string, number>> = {
  payments_device_enroll: 404,
  start_log_in_by_link: 404,
  backoffice_log_out: 401,
  cashier_log_out: 401,
  reconciliation_log_out: 401,
  backoffice_change_password: 400,
  cashier_change_password: 400,
  reconciliation_change_password: 400,
  backoffice_create_provider_config: 409,
};

function sendRequest(route: Route, request: TestRequest): Promise<Answer> {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_all, id: string) => String(request.ids?.[id]));
  const token = "token" in request ? request.token : tokenFor(route);
  return send(system.baseUrl, route.method, path, {
    ...(token === undefined ? {} : { token }),
    ...(request.body === undefined ? {} : { json: request.body }),
    ...(request.key === undefined ? {} : { headers: { "idempotency-key": request.key } }),
  });
}

function tokenFor({ who, path }: Route): string | undefined {
  if (who.kind !== "session") return undefined;
  return path.startsWith("/api/cashier/") ? cashier.token : owner.token;
}

const statusOf = (route: Route): number => Number(Object.keys(route.replies)[0]);
const fieldsOf = ({ body }: Answer): string[] => Object.keys(body ?? {}).toSorted();
const rows = FLAGGED.map((route) => ({ operation: route.operationId, route }));

async function outboxIsEmpty(): Promise<void> {
  const [row] = await database<[{ count: number }]>`select count(*) as count from outbox where delivered_at is null`;
  expect(row.count).toBe(0);
}

async function countEvents(): Promise<number> {
  const [row] = await database<[{ count: number }]>`
    select (select count(*) from registry_events) + (select count(*) from provider_events) as count`;
  return row.count;
}

describe("REQUESTS", () => {
  it("has one request for each row that awaits its effect, and for no other", () => {
    expect(Object.keys(REQUESTS).toSorted()).toEqual(FLAGGED.map(({ operationId }) => operationId).toSorted());
  });
});

/** Prepares the requests of some rows, a few at a time. */
async function prepare(which: typeof rows): Promise<Map<string, TestRequest>> {
  stationId = await newStation();
  const operations = new Set(which.map(({ operation }) => operation));
  const waiting = Object.entries(REQUESTS).filter(([operation]) => operations.has(operation));
  const prepared = new Map<string, TestRequest>();
  const prepareSome = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) prepared.set(next[0], await next[1]());
  };
  await Promise.all([prepareSome(), prepareSome(), prepareSome(), prepareSome()]);
  return prepared;
}

const healthy = new Map<string, Answer>();

/** Only rows whose repetition cannot show the usual answer. For the other rows, the repetitions below show it. */
describe("a change while the relay delivers", () => {
  const once = rows.filter(({ operation }) => operation in USED_UP);
  let requests: Map<string, TestRequest>;
  beforeAll(async () => {
    requests = await prepare(once);
  });

  it.each(once)("$operation: the usual answer", async ({ operation, route }) => {
    const answer = await sendRequest(route, requests.get(operation) ?? {});
    healthy.set(operation, answer);
    expect(answer.status, answer.text).toBe(statusOf(route));
    expect(answer.headers.get("x-effective")).toBeNull();
    expect(answer.body ?? {}).not.toHaveProperty("effective");
  });
});

describe("a change while the relay is stopped", () => {
  const answers = new Map<string, Answer>();
  const repeated = new Map<string, Answer>();
  const later = new Map<string, Answer>();
  /** Settlement notifies the station of these changes without the relay. */
  const ORDERS = ["cashier_open_order", "cashier_change_order", "cashier_void_order"];
  const late = rows.filter(({ operation }) => !ORDERS.includes(operation));
  /** A repetition of these acts again (design §5). */
  const ACTS_AGAIN = [
    "backoffice_reset_device",
    "backoffice_reset_sandbox",
    "backoffice_reset_user_password",
    "platform_reset_owner_password",
  ];
  /** The repetitions that have an entry in the audit log. */
  const recorded = new Set<string>();
  /** The test sends each of these twice while the relay is stopped. */
  const TWICE = [
    "backoffice_suspend_device",
    "backoffice_suspend_user",
    "backoffice_freeze_station",
    "backoffice_delete_sandbox",
  ];
  let signedOut: Answer;
  /** The device's snapshot, read with its new credential: first while the relay is stopped, then later. */
  let snapshots: readonly Answer[];
  let relayFault: unknown;

  beforeAll(async () => {
    const requests = await prepare(rows);
    await vi.waitFor(outboxIsEmpty, { timeout: 10_000 });
    const sendAll = async (into: Map<string, Answer>, which = rows): Promise<void> => {
      for (let from = 0; from < which.length; from += AT_ONCE) {
        const some = which.slice(from, from + AT_ONCE);
        await Promise.all(
          some.map(async ({ operation, route }) =>
            into.set(operation, await sendRequest(route, requests.get(operation) ?? {})),
          ),
        );
      }
    };
    const readSnapshot = (): Promise<Answer> => {
      const { credential } = (answers.get("payments_device_enroll") as Answer<{ credential: string }>).body;
      return send(system.baseUrl, "GET", "/api/payments/v1/devices/me/", { token: credential });
    };
    const pid = system.relay?.pid() ?? 0;
    process.kill(pid, "SIGSTOP");
    try {
      await sendAll(answers);
      await sendAll(
        repeated,
        rows.filter(({ operation }) => TWICE.includes(operation)),
      );
      snapshots = [await readSnapshot()];
      relayFault = (await send<{ dependencies: object }>(system.baseUrl, "GET", "/readyz")).body.dependencies;
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await vi.waitFor(outboxIsEmpty, { timeout: 15_000, interval: 50 });
    snapshots = [...snapshots, await readSnapshot()];
    const { token } = requests.get("cashier_log_out") ?? {};
    signedOut = await send(system.baseUrl, "GET", "/api/cashier/v1/session/", { token: token ?? "" });
    let before = await countEvents();
    for (const { operation, route } of rows) {
      later.set(operation, await sendRequest(route, requests.get(operation) ?? {}));
      const now = await countEvents();
      if (now > before) recorded.add(operation);
      before = now;
    }
  });

  it.each(rows.filter(({ operation }) => ORDERS.includes(operation)))(
    "$operation: the usual answer, because the station receives orders without the relay",
    ({ operation, route }) => {
      const answer = answers.get(operation) as Answer;
      expect(answer.status, answer.text).toBe(statusOf(route));
      expect(answer.headers.get("x-effective")).toBeNull();
      expect(answer.body ?? {}).not.toHaveProperty("effective");
    },
  );

  it.each(late)(
    "$operation: its answer states that the change is stored and not yet effective",
    ({ operation, route }) => {
      const answer = answers.get(operation) as Answer;
      const usual = (healthy.get(operation) ?? later.get(operation)) as Answer;
      expect(answer.headers.get("x-effective")).toBe("false");
      if (statusOf(route) === 201) {
        expect(answer.status, answer.text).toBe(201);
        expect(fieldsOf(answer)).toEqual(fieldsOf(usual));
        return;
      }
      expect(answer.status, answer.text).toBe(202);
      expect(answer.body).toMatchObject({ effective: false });
      expect(fieldsOf(answer)).toEqual([...fieldsOf(usual), "effective"].toSorted());
    },
  );

  it.each(TWICE)("%s, repeated while the relay is stopped: the same answer", (operation) => {
    expect(repeated.get(operation)).toMatchObject({ status: 202, body: { effective: false } });
  });

  it.each(rows)(
    "$operation, repeated once the relay delivers again: its answer is the usual one",
    ({ operation, route }) => {
      const answer = later.get(operation) as Answer;
      expect(answer.status, answer.text).toBe(USED_UP[operation] ?? statusOf(route));
      expect(answer.headers.get("x-effective")).toBeNull();
      expect(answer.body ?? {}).not.toHaveProperty("effective");
    },
  );

  it("a repetition changes nothing more: the audit log has no entry of it, except where it acts again", () => {
    // A second creation or log-in makes another thing, and these rows freeze and unfreeze the same thing in turn.
    const isAnother = ({ operation, route }: (typeof rows)[number]): boolean =>
      statusOf(route) === 201 || /_log_in$|freeze_(?:organization|platform)$/.test(operation);
    const changes = rows.filter((row) => recorded.has(row.operation) && !isAnother(row));
    expect(changes.map(({ operation }) => operation).toSorted()).toEqual(ACTS_AGAIN);
  });

  it("a log-out: takes effect without another request once the relay delivers again", () => {
    expect(signedOut).toMatchObject({ status: 401, body: { code: "session_invalid" } });
  });

  it("a new credential: unknown until the relay delivers, then accepted", () => {
    expect(snapshots.map(({ status }) => status)).toEqual([401, 200]);
  });

  it("the metrics of the gateway: count each of these answers", async () => {
    const port = /"metricsPort":(\d+)/.exec(system.log("gateway"))?.[1];
    const series = await scrape(Number(port));
    expect(metricSum(series, "gateway_changes_not_effective_total")).toBe(late.length + TWICE.length);
    expect(metricSum(series, "gateway_changes_not_effective_total", { operation: TWICE[0] ?? "" })).toBe(2);
  });

  it("readiness: names the relay", () => {
    expect(relayFault).toMatchObject({ relay: { ready: false, detail: "no_answer" } });
  });
});
