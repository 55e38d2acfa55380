/** Steps of a test at the demo station of `npm start`, whose virtual devices collect and display. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, vi } from "vitest";
import type { SandboxFacts } from "../../deploy/sandbox/facts.ts";
import { logIn, type Person } from "./people.ts";

/** A test repeats a call for this time, because a part that has just restarted may answer that it is unavailable. */
const RETRIES = { timeout: 120_000, interval: 250 };

export function sandboxFacts(dataDir: string): SandboxFacts {
  return JSON.parse(readFileSync(join(dataDir, "sandbox.json"), "utf8")) as SandboxFacts;
}

/** Logs in the cashier and takes the station's lease. Repeats both until the system has started. */
export async function cashierAt(facts: SandboxFacts, station: string): Promise<Person> {
  const cashier = await vi.waitFor(() => logIn(facts.baseUrl, "cashier", facts.cashier), RETRIES);
  await vi.waitFor(() => cashier.good("POST", `${station}/lease/`), RETRIES);
  return cashier;
}

/** Does a whole collection: the virtual companion reports, and the cashier attests. Returns the order's id. */
export async function collectAt(facts: SandboxFacts): Promise<number> {
  const station = `stations/${facts.demoStation.stationId}`;
  const cashier = await cashierAt(facts, station);
  const lines = [{ name: "Tea", quantity: 1, unit_amount: "3.10" }];
  const order = await vi.waitFor(
    () => cashier.good<{ order_id: number }>("POST", `${station}/orders/`, { body: { lines } }),
    RETRIES,
  );
  await vi.waitFor(async () => {
    const { routes } = await cashier.good<{ routes: unknown[] }>("GET", `${station}/routes/`);
    expect(routes).toContainEqual(expect.objectContaining({ route: "smart_pos", offered: true }));
  }, RETRIES);
  const body = { order_id: order.order_id, route: "smart_pos" };
  const intent = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, { body });
  const path = `${station}/intents/${intent.intent_id}/`;
  await vi.waitFor(
    async () => expect(await cashier.good("GET", path)).toMatchObject({ status: "processing" }),
    RETRIES,
  );
  expect(await cashier.good("POST", `${path}attest/`)).toMatchObject({ status: "succeeded" });
  return order.order_id;
}
