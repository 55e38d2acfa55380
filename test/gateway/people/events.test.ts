/** The owner's audit log over HTTP: it shows who changed what and when, and nothing of another organization. */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import { SEARCHED_ENTRIES } from "../../../services/db/event-page.ts";
import { logIn, type Person } from "../../support/people.ts";
import { addOrganization } from "../../support/second-organization.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

interface Event {
  readonly event_id: number;
  readonly at: string;
  readonly actor: { readonly kind: string; readonly id: number; readonly name: string };
  readonly action: string;
  readonly subject: { readonly kind: string; readonly id: number };
  readonly data: Record<string, unknown>;
}
interface Page {
  readonly events: readonly Event[];
  readonly has_more: boolean;
  readonly through_id: number | null;
}

let system: TestSystem;
let owner: Person;
beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(() => system.stop());

const page = (person: Person, query = "") => person.good<Page>("GET", `events/${query}`);
const newest = async (): Promise<number> => (await page(owner, "?limit=1")).events[0]?.event_id ?? 0;

describe("the owner's audit log", () => {
  it("changes by the owner: shown with person, subject and time", async () => {
    const sinceId = await newest();
    const startedAt = Date.now();
    const stationId = system.sandbox.stations[0]?.stationId as number;
    const body = { station_id: stationId, name: "New display", kind: "customer_display" };
    const { device_id } = await owner.good<{ device_id: number }>("POST", "devices/", { body });
    const codes = `devices/${device_id}/enrollment-codes/`;
    type Issued = { code: string; enrollment_code: { code_id: number } };
    const issued = await owner.good<Issued>("POST", codes, { body: {} });
    await owner.good("POST", `stations/${stationId}/suspend/`);
    await owner.good("POST", `stations/${stationId}/resume/`);

    const { events, has_more } = await page(owner, `?since_id=${sinceId}`);
    expect(has_more).toBe(false);
    const actor = { kind: "owner", id: owner.userId, name: owner.name };
    expect(events).toMatchObject([
      { actor, action: "device_registered", subject: { kind: "device", id: device_id } },
      {
        actor,
        action: "enrollment_code_issued",
        subject: { kind: "enrollment_code", id: issued.enrollment_code.code_id },
        data: { device_id },
      },
      {
        actor,
        action: "station_suspended",
        subject: { kind: "station", id: stationId },
        data: { from: "active", to: "suspended" },
      },
      { actor, action: "station_resumed", data: { from: "suspended", to: "active" } },
    ]);
    for (const { at } of events) {
      // Database and test share a clock. The database rounds a time down to its millisecond.
      expect(Date.parse(at)).toBeGreaterThanOrEqual(startedAt - 1);
      expect(Date.parse(at)).toBeLessThanOrEqual(Date.now());
    }
    expect(JSON.stringify(events)).not.toContain(issued.code);
    expect(JSON.stringify(events)).not.toContain(issued.code.replace("-", ""));
  });

  it("a seeded organization: the log names the operator who seeded it, and the person of an opened session", async () => {
    const { events } = await page(owner, "?since_id=0&limit=500");
    expect(events[0]).toMatchObject({ actor: { kind: "platform", id: 0, name: "operator" }, data: { seeded: true } });
    expect(events.filter(({ action }) => action === "session_opened").at(0)?.actor.id).toBe(owner.userId);
  });

  it("pages in both directions: each event once and in order", async () => {
    const whole = await page(owner, "?since_id=0&limit=500");
    expect(whole.has_more).toBe(false);
    expect(whole.events.length).toBeGreaterThan(3);
    const all = async (cursor: (last: number | undefined) => string): Promise<Event[]> => {
      const found: Event[] = [];
      for (let more = true; more; ) {
        const { events, has_more } = await page(owner, `?limit=2${cursor(found.at(-1)?.event_id)}`);
        expect(events.length).toBeLessThanOrEqual(2);
        found.push(...events);
        more = has_more;
      }
      return found;
    };
    const read = await all((last) => `&since_id=${last ?? 0}`);
    expect(read).toEqual(whole.events);
    const backwards = await all((last) => (last === undefined ? "" : `&before_id=${last}`));
    expect(backwards).toEqual(whole.events.toReversed());
    const ids = read.map(({ event_id }) => event_id);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect(await page(owner, `?since_id=${ids.at(-1)}`)).toEqual({ events: [], has_more: false, through_id: null });
  });

  it("a search: finds person, action, subject and data, also in the logs of providers and robotics", async () => {
    const body = { station_id: system.sandbox.stations[0]?.stationId, name: "100%_\\sure", kind: "customer_display" };
    const { device_id } = await owner.good<{ device_id: number }>("POST", "devices/", { body });
    const found = async (text: string) =>
      (await page(owner, `?limit=1&search=${encodeURIComponent(text)}`)).events.map(({ subject }) => subject.id);
    expect(await found("100% \\SURE")).toEqual([device_id]);
    expect(await found(`device registered device ${device_id}`)).toEqual([device_id]);
    expect(await found("100x_")).toEqual([]);
    const { events: before } = await page(owner, `?search=device+registered&before_id=${await newest()}`);
    expect(new Set(before.map(({ action }) => action))).toEqual(new Set(["device_registered"]));
    for (const log of ["provider-events", "robotics-events"]) {
      expect(await owner.good("GET", `${log}/?search=nothing+has+this+text`)).toMatchObject({ events: [] });
    }
    await owner.refused("invalid_request", "GET", "events/?search=");
  });

  it("a search in a long log: reads a part at a time, in both directions, up to the end", async () => {
    const sinceId = await newest();
    const stationId = system.sandbox.stations[0]?.stationId as number;
    const sql = postgres(system.database.url, { max: 1 });
    const write = (name: string, count: number) => sql`
      insert into registry_events (organization_id, actor_kind, actor_id, actor_name, action, subject_kind, subject_id)
      select organization_id, 'owner', 1, ${name}, 'station_renamed', 'station', station_id
      from stations, generate_series(1, ${count}::int) where station_id = ${stationId}`;
    await write("The oldest", 1);
    await write("Ada", SEARCHED_ENTRIES);
    await write("The newest", 1);
    await sql.end();
    const search = async (query: string) => {
      const { events, ...more } = await page(owner, `?search=the+${query}`);
      return { names: events.map(({ actor }) => actor.name), ...more };
    };
    const first = await search("oldest");
    expect(first).toEqual({ names: [], has_more: true, through_id: expect.any(Number) });
    expect((await search(`oldest&before_id=${first.through_id}`)).names).toEqual(["The oldest"]);
    const forward = await search(`newest&since_id=${sinceId}`);
    expect(forward).toEqual({ names: [], has_more: true, through_id: expect.any(Number) });
    expect(await search(`newest&since_id=${forward.through_id}`)).toEqual({
      names: ["The newest"],
      has_more: false,
      through_id: null,
    });
  });

  it("events with long names: a page stays within one bus message", async () => {
    const sinceId = await newest();
    const stationId = system.sandbox.stations[0]?.stationId as number;
    const sql = postgres(system.database.url, { max: 1 });
    await sql`
      insert into registry_events (organization_id, actor_kind, actor_id, actor_name, action, subject_kind, subject_id, data)
      select organization_id, 'owner', 1, 'Ada', 'station_renamed', 'station', ${stationId},
             jsonb_build_object('name', repeat('\u20ac', 1000))
      from stations, generate_series(1, 500) where station_id = ${stationId}`;
    await sql.end();
    const first = await page(owner, `?limit=500&since_id=${sinceId}`);
    expect(first.has_more).toBe(true);
    // Each event has some three kilobytes, so the page is nearly full.
    expect(first.events.length).toBeGreaterThan(BOUNDS.listedBytes / 4_000);
    expect(JSON.stringify(first.events).length).toBeLessThan(BOUNDS.listedBytes);
    const rest: Event[] = [];
    for (let last = first; last.has_more; rest.push(...last.events)) {
      const after = rest.at(-1) ?? first.events.at(-1);
      last = await page(owner, `?limit=500&since_id=${after?.event_id}`);
    }
    expect(first.events.length + rest.length).toBe(500);
  });

  it("invalid limits and cursors: refused", async () => {
    for (const query of [
      "?limit=501",
      "?limit=0",
      "?since_id=-1",
      "?since_id=x",
      "?since_id=1e2",
      "?since_id=",
      "?before_id=0",
      "?since_id=1&before_id=2",
      "?before=1",
    ])
      await owner.refused("invalid_request", "GET", `events/${query}`);
  });

  it("an owner of another organization: sees only the log of that organization", async () => {
    const elsewhere = await addOrganization(system);
    const stranger = await logIn(system.baseUrl, "backoffice", elsewhere.owner);
    const { events } = await page(stranger);
    expect(events.map(({ action, actor }) => [action, actor.name])).toEqual([["session_opened", "Olga Elsewhere"]]);
  });
});
