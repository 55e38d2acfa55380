/** Robotics over HTTP: what lists contain, to whom an Idempotency-Key belongs, and how much an offer may contain. */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPace } from "../../../clients/http/pace.ts";
import { createTransport } from "../../../clients/http/transport.ts";
import { logIn as logInToTrigger } from "../../../clients/webhooks/trigger.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import { addFleet, offerBody, offerTask, type TaskOnTheWire, type TestFleet } from "../../support/fleets.ts";
import { logIn, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

let system: TestSystem;
let owner: Person;
let filialId: number;
let fleet: TestFleet;

async function newFilial(name: string): Promise<number> {
  return (await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name } })).filial_id;
}
beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  filialId = await newFilial("Old Town");
  fleet = await addFleet(system.baseUrl, owner, filialId);
});
afterAll(() => system.stop());

interface Tasks {
  readonly serving_tasks: readonly TaskOnTheWire[];
  readonly has_more: boolean;
}
const idsOf = ({ serving_tasks }: Tasks): number[] => serving_tasks.map(({ task_id }) => task_id);

describe("a list of tasks", () => {
  it("pages: after `since_id` for a fleet, before `before_id` for its owner, up to the end", async () => {
    const ids: number[] = [];
    for (let index = 0; index < 3; index += 1) ids.push((await offerTask(owner, fleet)).task_id);
    const [first = 0, second = 0, third = 0] = ids;
    const since = (query: string) => fleet.good<Tasks>("GET", `serving-tasks/?${query}`);
    const page = await since("limit=2");
    expect([idsOf(page), page.has_more]).toEqual([[first, second], true]);
    const next = await since(`limit=2&since_id=${second}`);
    expect([idsOf(next), next.has_more]).toEqual([[third], false]);
    expect(idsOf(await since(`since_id=${third}`))).toEqual([]);
    expect(idsOf(await since(`since_id=${first}&status=offered`))).toEqual([second, third]);

    const listOfOwner = (query: string) => owner.good<Tasks>("GET", `serving-tasks/?filial_id=${filialId}&${query}`);
    const newest = await listOfOwner("limit=2");
    expect([idsOf(newest), newest.has_more]).toEqual([[third, second], true]);
    const older = await listOfOwner(`limit=2&before_id=${second}`);
    expect([idsOf(older), older.has_more]).toEqual([[first], false]);
    expect(idsOf(await listOfOwner(`before_id=${first}`))).toEqual([]);
  });

  it("read by the owner for one fleet: only the tasks of this fleet", async () => {
    const other = await addFleet(system.baseUrl, owner, filialId, "Upstairs");
    const { task_id: theirs } = await offerTask(owner, other);
    const { task_id: ours } = await offerTask(owner, fleet);
    const of = async (consumerId: number) =>
      idsOf(await owner.good<Tasks>("GET", `serving-tasks/?consumer_id=${consumerId}`));
    expect(await of(other.consumerId)).toEqual([theirs]);
    expect(await of(fleet.consumerId)).toContain(ours);
    expect(await of(fleet.consumerId)).not.toContain(theirs);
  });
});

describe("a list of fleets", () => {
  it("read by the owner for one filial: only the fleets of this filial", async () => {
    const elsewhere = await newFilial("Harbour");
    const there = await addFleet(system.baseUrl, owner, elsewhere, "Harbour fleet");
    interface Fleets {
      readonly robotics_consumers: readonly { readonly consumer_id: number; readonly filial_id: number }[];
    }
    const of = async (id: number) =>
      (await owner.good<Fleets>("GET", `robotics-consumers/?filial_id=${id}`)).robotics_consumers;
    expect((await of(elsewhere)).map(({ consumer_id }) => consumer_id)).toEqual([there.consumerId]);
    expect(new Set((await of(filialId)).map(({ filial_id }) => filial_id))).toEqual(new Set([filialId]));
  });
});

describe("the webhooks command", () => {
  it("an owner with more fleets than a page: finds each of them", async () => {
    const sql = postgres(system.database.url, { max: 1 });
    // A filial may have fifty fleets. Only the service checks this limit, so the database accepts more.
    await sql`
      insert into robotics_consumers (organization_id, filial_id, name, mode, credential_hash)
      select organization_id, filial_id, 'Fleet ' || n, 'test', sha256(convert_to('fleet ' || n, 'UTF8'))
      from filials, generate_series(1, ${BOUNDS.listed}) as n where filial_id = ${filialId}`;
    const [stored] = await sql<[{ ids: number[] }]>`
      select array_agg(consumer_id::int order by consumer_id) as ids from robotics_consumers c
      where organization_id = (select organization_id from filials where filial_id = ${filialId})`;
    await sql.end();
    const { signal } = new AbortController();
    const transport = createTransport({ baseUrl: system.baseUrl, api: "backoffice", pace: createPace(1) });
    const command = await logInToTrigger({ transport, details: system.owner, signal });
    const found = (await command.consumers()).map(({ consumer_id }) => consumer_id);
    await command.logOut();
    expect(found.length).toBeGreaterThan(BOUNDS.listed);
    expect(found).toEqual(stored.ids);
  });
});

describe("the Idempotency-Key of an offer", () => {
  it("the same key of another person: another offer", async () => {
    const colleague = { email: "olivia@sandbox.example", password: "correct horse battery" };
    await owner.good("POST", "users/", { body: { ...colleague, name: "Olivia", role: "owner" } });
    const olivia = await logIn(system.baseUrl, "backoffice", colleague);
    const offer = { body: offerBody(fleet.consumerId), key: "table 12" };
    const mine = await owner.good<TaskOnTheWire>("POST", "serving-tasks/", offer);
    const hers = await olivia.good<TaskOnTheWire>("POST", "serving-tasks/", offer);
    expect(hers.task_id).toBeGreaterThan(mine.task_id);
    const again = [owner, olivia].map((person) => person.good<TaskOnTheWire>("POST", "serving-tasks/", offer));
    expect((await Promise.all(again)).map(({ task_id }) => task_id)).toEqual([mine.task_id, hers.task_id]);
  });
});

describe("the content of an offer", () => {
  /** The longest offer that the contract allows, in characters that take the most bytes. */
  const longest = (lines: number): object => {
    const name = "麺".repeat(BOUNDS.nameCharacters);
    const manifest = Array.from({ length: lines }, () => ({ name, quantity: BOUNDS.lineQuantity }));
    const destination = { name, details: "階".repeat(BOUNDS.reasonCharacters) };
    return offerBody(fleet.consumerId, { manifest, destination });
  };
  /** JSON as many programs write it: six bytes for each character that is not ASCII. */
  const escaped = (body: object): string =>
    JSON.stringify(body).replaceAll(/[^\0-\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`);
  const post = (body: string, path = "serving-tasks/") =>
    fetch(`${system.baseUrl}/api/backoffice/v1/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${owner.token}`, "content-type": "application/json" },
      body,
    });

  it("as long as its limits allow, in each form of JSON: accepted and shown completely", async () => {
    const body = longest(BOUNDS.orderLines);
    expect(escaped(body).length).toBeGreaterThan(240_000);
    for (const written of [JSON.stringify(body), escaped(body)]) {
      const answer = await post(written);
      const task = (await answer.json()) as TaskOnTheWire & { readonly manifest: object[] };
      expect([answer.status, task.manifest?.length], JSON.stringify(task).slice(0, 200)).toEqual([201, 200]);
      const { manifest, destination } = body as { readonly manifest: object; readonly destination: object };
      const seen = await fleet.good("GET", `serving-tasks/${task.task_id}/`);
      expect(seen).toMatchObject({ manifest, destination });
      await owner.good("POST", `serving-tasks/${task.task_id}/cancel/`, { body: { reason: "A test." } });
    }
    expect((await post(escaped(longest(BOUNDS.orderLines + 1)))).status).toBe(400);
    expect((await post(" ".repeat(256 * 1_024 + 1))).status).toBe(413);
    // Other routes have the usual limit of a body.
    expect((await post(JSON.stringify({ name: "x".repeat(20_000) }), "filials/")).status).toBe(413);
  });

  it("a destination of several lines: accepted; characters that change how text is shown: refused", async () => {
    const offer = (details: string) => ({ body: offerBody(fleet.consumerId, { destination: { name: "A", details } }) });
    const taken = await owner.good("POST", "serving-tasks/", offer(" Gate 3\r\nRing twice. "));
    expect(taken).toMatchObject({ destination: { name: "A", details: "Gate 3\nRing twice." } });
    for (const details of ["Gate\u202e3", "\u001b[2J", "Gate\u0085", "  "])
      await owner.refused("invalid_request", "POST", "serving-tasks/", offer(details));
    for (const reason of ["\u001b[2J", "Over\u202e", "Over\nwritten", "  "]) {
      await owner.refused("invalid_request", "POST", `filials/${filialId}/robotics/pause/`, { body: { reason } });
    }
  });
});
