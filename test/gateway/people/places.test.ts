/** Filials, stations and devices over HTTP: names may be the same, and what there is too much of is refused by name. */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import { logIn, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";

/** As the registry's limit has it, which the gateway's tests need not know. */
const FILIALS = 10_000;

let system: TestSystem;
let owner: Person;

beforeAll(async () => {
  system = await startSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(() => system.stop());

const station = async (): Promise<number> => {
  const body = { filial_id: system.sandbox.filialId, name: "Counter", currency: "EUR" };
  return (await owner.good<{ station_id: number }>("POST", "stations/", { body })).station_id;
};
const display = (stationId: number) => ({ station_id: stationId, name: "Display", kind: "customer_display" });

describe("places and devices", () => {
  it("may have one name", async () => {
    for (const _ of [1, 2]) await owner.good("POST", "filials/", { body: { name: "Old town" } });
    const stations = [await station(), await station()];
    expect(new Set(stations).size).toBe(2);
    for (const _ of [1, 2]) await owner.good("POST", "devices/", { body: display(stations[0] ?? 0) });
    await owner.good("PATCH", `stations/${stations[1]}/`, { body: { name: "Counter" } });
  });

  it("are refused where there are as many as there can be", async () => {
    const stationId = await station();
    const body = display(stationId);
    await Promise.all(Array.from({ length: STATE_LIMITS.devices }, () => owner.good("POST", "devices/", { body })));
    expect((await owner.refused("device_limit_reached", "POST", "devices/", { body })).status).toBe(409);
    const sql = postgres(system.database.url, { max: 1 });
    await sql`
      insert into filials (organization_id, name)
      select ${system.sandbox.organizationId}, 'Another' from generate_series(1, ${FILIALS}::int)`;
    await sql.end();
    const refused = await owner.refused("conflict", "POST", "filials/", { body: { name: "One too many" } });
    expect(refused.status).toBe(409);
  });
});
