/** Robotics over HTTP: the owner offers, cancels and pauses; a fleet polls, accepts and completes with its credential. */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { routes } from "../../../gateway/routes.ts";
import { seedSandboxConsumer } from "../../../services/bus/messages/consumers.ts";
import { call } from "../../../services/bus/operation.ts";
import { addFleet, fleetClient, offerBody, offerTask, type TestFleet } from "../../support/fleets.ts";
import { type Refused, send } from "../../support/http.ts";
import { logIn, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

let system: TestSystem;
let owner: Person;
let fleet: TestFleet;

beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(() => system.stop());

/** Each test has a new fleet at a new filial, with an unused throttle. */
async function freshFleet(): Promise<{ fleet: TestFleet; filialId: number }> {
  const name = `Filial ${Math.random()}`;
  const { filial_id: filialId } = await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name } });
  fleet = await addFleet(system.baseUrl, owner, filialId);
  return { fleet, filialId };
}

interface ListBody {
  readonly serving_tasks: readonly { readonly task_id: number; readonly status: string }[];
  readonly has_more: boolean;
  readonly paused: boolean;
}
const list = (more: { readonly etag?: string; readonly query?: string } = {}) =>
  fleet.call<ListBody>("GET", `serving-tasks/${more.query ?? ""}`, {
    headers: more.etag === undefined ? {} : { "if-none-match": more.etag },
  });
const etagOf = (answer: { readonly headers: Headers }): string => answer.headers.get("etag") ?? "";

describe("the life of a task", () => {
  it("a task is offered, listed, accepted and completed; the fleet can read manifest and destination", async () => {
    await freshFleet();
    const { task_id } = await offerTask(owner, fleet, { destination: { name: "Table 12", details: "By the window." } });
    const listed = await list();
    expect(listed.headers.get("cache-control")).toBe("private, no-cache");
    expect(listed.body).toMatchObject({
      serving_tasks: [
        {
          task_id,
          display_number: 1,
          status: "offered",
          manifest: [{ name: "Soup", quantity: 2 }],
          destination: { name: "Table 12", details: "By the window." },
        },
      ],
      has_more: false,
      paused: false,
    });
    expect(JSON.stringify(listed.body)).not.toContain("cancel_reason");
    const accepted = await fleet.good("POST", `serving-tasks/${task_id}/accept/`);
    expect(accepted).toMatchObject({ status: "accepted" });
    expect(await fleet.good("POST", `serving-tasks/${task_id}/accept/`)).toEqual(accepted);
    expect(await fleet.good("POST", `serving-tasks/${task_id}/complete/`)).toMatchObject({ status: "completed" });
    expect((await list()).body.serving_tasks).toEqual([]);
    expect((await list({ query: "?status=completed" })).body.serving_tasks).toMatchObject([{ task_id }]);
    expect(await owner.good("GET", `serving-tasks/${task_id}/`)).toMatchObject({ task_id, status: "completed" });
  });

  it("a task that is cancelled or has expired: a later request is refused with this end", async () => {
    const { filialId } = await freshFleet();
    const cancelled = await offerTask(owner, fleet);
    const reason = { body: { reason: "No guest." } };
    const after = await owner.good("POST", `serving-tasks/${cancelled.task_id}/cancel/`, reason);
    expect(after).toMatchObject({ status: "cancelled", cancel_reason: "No guest." });
    const accept = (id: number): [string, string] => ["POST", `serving-tasks/${id}/accept/`];
    const late = await fleet.refused("task_not_actionable", ...accept(cancelled.task_id));
    expect(late).toMatchObject({ status: 409, body: { status: "cancelled" } });

    const expiring = await offerTask(owner, fleet, { valid_for_seconds: 5 });
    const status = async () => (await owner.good("GET", `serving-tasks/${expiring.task_id}/`))["status"];
    await expect.poll(status, { timeout: 10_000, interval: 200 }).toBe("expired");
    expect(await fleet.refused("task_expired", ...accept(expiring.task_id))).toMatchObject({ status: 409 });
    await fleet.refused("task_not_actionable", "POST", `serving-tasks/${expiring.task_id}/complete/`);

    const { events } = await owner.good<{ events: { action: string; actor: { kind: string } }[] }>(
      "GET",
      "robotics-events/?limit=5",
    );
    expect(events.map(({ action, actor }) => [action, actor.kind])).toEqual([
      ["serving_task_expired", "system"],
      ["serving_task_offered", "owner"],
      ["serving_task_cancelled", "owner"],
      ["serving_task_offered", "owner"],
      ["robotics_consumer_created", "owner"],
    ]);
    const tasks = await owner.good<{ serving_tasks: unknown[] }>("GET", `serving-tasks/?filial_id=${filialId}`);
    expect(tasks.serving_tasks).toHaveLength(2);
  });

  it("an offer with only a name as its destination: the task has no details", async () => {
    await freshFleet();
    const { task_id } = await offerTask(owner, fleet);
    const destination = { name: "Table 12", details: null };
    expect(await fleet.good("GET", `serving-tasks/${task_id}/`)).toMatchObject({ destination });
    expect(await owner.good("GET", `serving-tasks/${task_id}/`)).toMatchObject({ destination });
  });

  it("a consumer that is suspended after the look-up of its credential: its acceptance is refused", async () => {
    await freshFleet();
    const { task_id } = await offerTask(owner, fleet);
    const sql = postgres(system.database.url, { max: 2 });
    const accepting = await sql.begin(async (held) => {
      await held`update robotics_consumers set status = 'suspended' where consumer_id = ${fleet.consumerId}`;
      // The look-up of the credential still finds an active consumer. Then the request waits for this transaction.
      const acceptance = fleet.refused("consumer_suspended", "POST", `serving-tasks/${task_id}/accept/`);
      const waits = async () =>
        (await sql`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%robotics_consumers%'`)
          .length;
      await expect.poll(waits, { timeout: 10_000, interval: 20 }).toBeGreaterThan(0);
      return { acceptance };
    });
    await sql.end();
    expect((await accepting.acceptance).status).toBe(403);
    expect(await owner.good("GET", `serving-tasks/${task_id}/`)).toMatchObject({ status: "offered" });
  });

  it("an offer sent twice with one Idempotency-Key: one task", async () => {
    await freshFleet();
    const body = offerBody(fleet.consumerId);
    const first = await owner.good("POST", "serving-tasks/", { body, key: "once" });
    expect(await owner.good("POST", "serving-tasks/", { body, key: "once" })).toEqual(first);
    const other = { body: { ...body, leg: "courier" }, key: "once" };
    await owner.refused("idempotency_key_reused", "POST", "serving-tasks/", other);
  });
});

describe("the audit log of robotics", () => {
  it("the operator of the installation: named as in the other audit logs", async () => {
    const { organizationId, filialId } = system.sandbox;
    const credentialHash = "5a".repeat(32);
    const { consumerId } = await call(system.bus.nc, seedSandboxConsumer, {
      organizationId,
      filialId,
      credentialHash,
    });
    const { events } = await owner.good<{ events: { subject: object }[] }>("GET", "robotics-events/");
    const subject = { kind: "robotics_consumer", id: consumerId };
    expect(events.find((event) => JSON.stringify(event.subject) === JSON.stringify(subject))).toMatchObject({
      action: "robotics_consumer_created",
      actor: { kind: "platform", id: 0, name: "operator" },
    });
  });
});

describe("the entity tag of a list of tasks", () => {
  it("stays while nothing changes, and changes with a task, with a further page and with a pause", async () => {
    const { filialId } = await freshFleet();
    const tags = [etagOf(await list({ query: "?limit=1" }))];
    const changed = async (): Promise<void> => {
      const last = tags.at(-1) ?? "";
      const fresh = await list({ query: "?limit=1", etag: last });
      expect(fresh.status).toBe(200);
      tags.push(etagOf(fresh));
      expect(await list({ query: "?limit=1", etag: etagOf(fresh) })).toMatchObject({ status: 304, text: "" });
    };
    const first = await offerTask(owner, fleet);
    await changed();
    await offerTask(owner, fleet);
    // The page has the same task as before; only `has_more` has changed.
    await changed();
    await fleet.good("POST", `serving-tasks/${first.task_id}/accept/`);
    await changed();
    const reason = { body: { reason: "Fire drill." } };
    await owner.good("POST", `filials/${filialId}/robotics/pause/`, reason);
    await changed();
    await owner.good("POST", `filials/${filialId}/robotics/resume/`, reason);
    const resumed = await list({ query: "?limit=1", etag: tags.at(-1) ?? "" });
    expect([resumed.status, etagOf(resumed)]).toEqual([200, tags.at(-2)]);
    expect(new Set(tags).size).toBe(tags.length);
    const head = await fleet.call("HEAD", "serving-tasks/?limit=1");
    expect([head.status, etagOf(head), head.text]).toEqual([200, tags.at(-2), ""]);
  });

  it("one task: has an entity tag as well", async () => {
    await freshFleet();
    const { task_id } = await offerTask(owner, fleet);
    const path = `serving-tasks/${task_id}/`;
    const etag = etagOf(await fleet.call("GET", path));
    expect((await fleet.call("GET", path, { headers: { "if-none-match": etag } })).status).toBe(304);
    await fleet.good("POST", `${path}accept/`);
    expect((await fleet.call("GET", path, { headers: { "if-none-match": etag } })).status).toBe(200);
  });
});

describe("a pause of robotics at a filial", () => {
  it("the fleet sees it; offers and acceptances are refused, and running tasks can be completed", async () => {
    const { filialId } = await freshFleet();
    const path = `filials/${filialId}/robotics/`;
    expect(await owner.good("GET", path)).toEqual({
      filial_id: filialId,
      paused: false,
      changed_at: null,
      changed_by: null,
      reason: null,
    });
    const underWay = await offerTask(owner, fleet);
    await fleet.good("POST", `serving-tasks/${underWay.task_id}/accept/`);
    const open = await offerTask(owner, fleet);
    const paused = await owner.good("POST", `${path}pause/`, { body: { reason: "Fire drill." } });
    expect(paused).toMatchObject({ paused: true, reason: "Fire drill.", changed_by: owner.name });
    expect(await owner.good("POST", `${path}pause/`, { body: { reason: "Again." } })).toEqual(paused);
    expect((await list()).body.paused).toBe(true);
    const offer = { body: offerBody(fleet.consumerId) };
    await owner.refused("robotics_paused", "POST", "serving-tasks/", offer);
    await fleet.refused("robotics_paused", "POST", `serving-tasks/${open.task_id}/accept/`);
    await fleet.good("POST", `serving-tasks/${underWay.task_id}/complete/`);
    await owner.good("POST", `${path}resume/`, { body: { reason: "Over." } });
    await fleet.good("POST", `serving-tasks/${open.task_id}/accept/`);
  });
});

describe("every route for fleets", () => {
  const consumerRoutes = routes.filter(({ who }) => who.kind === "consumer");
  const pathOf = (path: string): string => path.replaceAll(/\{\w+\}/g, "1");
  const tryAll = async (token: string | undefined): Promise<unknown[]> => {
    const answers = [];
    for (const { method, path } of consumerRoutes) {
      const answer = await send<Refused>(system.baseUrl, method, pathOf(path), token === undefined ? {} : { token });
      answers.push([answer.status, answer.body?.code, answer.headers.get("www-authenticate")?.split(" ")[0]]);
    }
    return answers;
  };

  it("no credential, a person, a device, a suspended consumer, an old credential: refused", async () => {
    const { fleet: mine } = await freshFleet();
    expect(consumerRoutes.length).toBeGreaterThanOrEqual(4);
    expect(new Set(consumerRoutes.map(({ path }) => path.split("/")[2]))).toEqual(new Set(["robotics"]));
    const all = (code: string) => consumerRoutes.map(() => [401, code, "Bearer"]);
    expect(await tryAll(undefined)).toEqual(all("credential_missing"));
    expect(await tryAll(owner.token)).toEqual(all("credential_invalid"));
    expect(await tryAll("dp_00_not-a-robot")).toEqual(all("credential_invalid"));
    const { consumerId, credential } = mine;
    await mine.good("GET", "serving-tasks/");
    const path = `robotics-consumers/${consumerId}/`;
    await owner.good("PATCH", path, { body: { status: "suspended" } });
    expect(await tryAll(credential)).toEqual(consumerRoutes.map(() => [403, "consumer_suspended", undefined]));
    await owner.good("PATCH", path, { body: { status: "active" } });
    await mine.good("GET", "serving-tasks/");
    const { credential: next } = await owner.good<{ credential: string }>("POST", `${path}reset-credential/`);
    await mine.refused("credential_invalid", "GET", "serving-tasks/");
    await fleetClient(system.baseUrl, next).good("GET", "serving-tasks/");
    const { robotics_consumers } = await owner.good<{ robotics_consumers: object[] }>("GET", "robotics-consumers/");
    expect(JSON.stringify(robotics_consumers)).not.toMatch(/rc_|hash|credential/);
  });

  it("the tasks of another fleet: not found", async () => {
    const { fleet: theirs } = await freshFleet();
    const { task_id } = await offerTask(owner, theirs);
    const { fleet: mine } = await freshFleet();
    await mine.refused("not_found", "GET", `serving-tasks/${task_id}/`);
    await mine.refused("not_found", "POST", `serving-tasks/${task_id}/accept/`);
    await mine.refused("not_found", "POST", `serving-tasks/${task_id}/complete/`);
    expect((await list()).body.serving_tasks).toEqual([]);
    expect(await owner.good("GET", `serving-tasks/${task_id}/`)).toMatchObject({ status: "offered" });
  });

  it("one credential: thirty requests at once, then five a second", async () => {
    const { fleet: mine } = await freshFleet();
    const startedAtMs = performance.now();
    const answers = await Promise.all(Array.from({ length: 45 }, () => mine.call<Refused>("GET", "serving-tasks/")));
    const seconds = (performance.now() - startedAtMs) / 1_000;
    const good = answers.filter(({ status }) => status === 200).length;
    expect(good).toBeGreaterThanOrEqual(30);
    expect(good).toBeLessThanOrEqual(30 + Math.ceil(seconds * 5));
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.body.code).toBe("throttled");
    expect(refused?.headers.get("ratelimit-policy")).toBe('"consumer";q=30;w=6');
    // Another fleet at the same address has another throttle.
    await (await freshFleet()).fleet.good("GET", "serving-tasks/");
  });
});
