/** A person with a session at an API for people: back office, cashier or reconciliation. */
import { expect } from "vitest";
import { type ApiClient, apiClient } from "./api-client.ts";
import { send } from "./http.ts";
import type { LogIn, TestSystem } from "./system.ts";

export interface Person extends ApiClient {
  readonly token: string;
  readonly userId: number;
  readonly name: string;
}

interface SessionBody {
  readonly token: string;
  readonly user: { readonly user_id: number; readonly name: string };
}

/** Logs in; the person's paths are then below `/api/<api>/v1/`, for example `person.good("GET", "stations/")`. */
export async function logIn(
  baseUrl: string,
  api: "backoffice" | "cashier" | "reconciliation",
  details: LogIn,
): Promise<Person> {
  const root = `${baseUrl}/api/${api}/v1/`;
  const answer = await send<SessionBody>(baseUrl, "POST", `/api/${api}/v1/session/`, { json: details });
  expect(answer.status, answer.text).toBe(200);
  const { token, user } = answer.body;
  return { ...apiClient(root, token), token, userId: user.user_id, name: user.name };
}

export const OPERATOR_PASSWORD = "a long enough password";

/** A reconciliation operator whom the owner adds, logged in. */
export async function addOperator(
  baseUrl: string,
  owner: Person,
  email = "rita@sandbox.example",
  name = "Rita",
): Promise<Person> {
  const details = { email, password: OPERATOR_PASSWORD };
  await owner.good("POST", "users/", { body: { ...details, name, role: "reconciliation_operator" } });
  return await logIn(baseUrl, "reconciliation", details);
}

/** The sandbox's cashier, logged in, has the lease of the first station. `station` is its path, such as `stations/7`. */
export async function openTill(
  system: Pick<TestSystem, "baseUrl" | "cashier" | "sandbox">,
): Promise<{ readonly cashier: Person; readonly station: string }> {
  const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const station = `stations/${system.sandbox.stations[0]?.stationId}`;
  await cashier.good("POST", `${station}/lease/`);
  return { cashier, station };
}

/** The body of a request for an order of one line. */
export const oneLine = (unit_amount: string, name = "Soup") => ({ lines: [{ name, quantity: 1, unit_amount }] });

/** A cashier opens an order of one line. Returns the order's id. */
export async function newOrder(
  cashier: ApiClient,
  station: string,
  unit_amount: string,
  name?: string,
): Promise<number> {
  const request = { body: oneLine(unit_amount, name) };
  return (await cashier.good<{ order_id: number }>("POST", `${station}/orders/`, request)).order_id;
}
