/** Data that all sections use: the signed-in person, accounts, filials, stations and operators. */
import { type Signal, signal } from "@preact/signals";
import { call, type Result } from "../shared/call.ts";
import type { Failure } from "../shared/failures.ts";
import { keepOnePerson } from "../shared/one-person.ts";
import type { ReplyOf } from "../shared/operations.ts";
import { accountOf } from "./account-keys.ts";
import { words } from "./words.ts";

export type Person = ReplyOf<"GET /api/reconciliation/v1/session/">["user"];
export type Account = ReplyOf<"GET /api/reconciliation/v1/accounts/">["statement_accounts"][number];
type Filial = ReplyOf<"GET /api/reconciliation/v1/filials/">["filials"][number];
type Station = ReplyOf<"GET /api/reconciliation/v1/stations/">["stations"][number];
type Operator = ReplyOf<"GET /api/reconciliation/v1/operators/">["operators"][number];

/** Undefined until it is known whether a person is signed in; null when no person is. */
export const person = signal<Person | null | undefined>(undefined);
export const accounts = signal<readonly Account[]>([]);
export const operators = signal<readonly Operator[]>([]);
export const filials = signal<readonly Filial[]>([]);
export const stations = signal<readonly Station[]>([]);
/** Why the page could not load the session or this data. */
export const beginFailure = signal<Failure | null>(null);

/** The most entries of one answer, and more pages than an organization has. */
const LIMIT = 500;
const MAX_PAGES = 20;

export async function begin(): Promise<void> {
  beginFailure.value = null;
  const session = await call("GET /api/reconciliation/v1/session/");
  if (session.ok) {
    person.value = session.reply.user;
    keepOnePerson(session.reply.user.user_id);
    await loadKnown();
  } else if (session.code === "session_missing" || session.code === "session_invalid") person.value = null;
  else beginFailure.value = session;
}

export async function loadKnown(): Promise<void> {
  const [people] = await Promise.all([
    call("GET /api/reconciliation/v1/operators/"),
    loadAll(
      accounts,
      (query) => call("GET /api/reconciliation/v1/accounts/", { query }),
      (reply) => reply.statement_accounts,
      ({ account_id }) => account_id,
    ),
    loadAll(
      filials,
      (query) => call("GET /api/reconciliation/v1/filials/", { query }),
      (reply) => reply.filials,
      ({ filial_id }) => filial_id,
    ),
    loadAll(
      stations,
      (query) => call("GET /api/reconciliation/v1/stations/", { query }),
      (reply) => reply.stations,
      ({ station_id }) => station_id,
    ),
  ]);
  if (people.ok) operators.value = people.reply.operators;
  else beginFailure.value = people;
}

/** Loads all pages of a list. After a failure it keeps the previous list and reports the failure. */
async function loadAll<R extends { readonly has_more: boolean }, T>(
  into: Signal<readonly T[]>,
  ask: (query: { readonly since_id: number; readonly limit: number }) => Promise<Result<R>>,
  itemsOf: (reply: R) => readonly T[],
  idOf: (item: T) => number,
): Promise<void> {
  const found: T[] = [];
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const last = found[found.length - 1];
    const listed = await ask({ since_id: last === undefined ? 0 : idOf(last), limit: LIMIT });
    if (!listed.ok) {
      beginFailure.value = listed;
      return;
    }
    found.push(...itemsOf(listed.reply));
    if (!listed.reply.has_more) break;
  }
  into.value = found;
}

/** The name of the account with this key; for a provider config without an account, the config. */
export function accountName(key: string): string {
  const [source, id = ""] = key.split(":");
  const name = accountOf(accounts.value, key)?.name;
  return name ?? (source === "provider" ? words().providerAccount(id) : key);
}

export const operatorName = (userId: number | null): string =>
  operators.value.find(({ user_id }) => user_id === userId)?.name ?? (userId === null ? "" : `#${userId}`);

export const filialName = (id: number): string =>
  filials.value.find(({ filial_id }) => filial_id === id)?.name ?? `#${id}`;

/** The name of a station, with its filial when there are several: two filials may each have a station "Bar". */
export function stationName(id: number): string {
  const station = stations.value.find(({ station_id }) => station_id === id);
  if (station === undefined) return `#${id}`;
  return filials.value.length > 1 ? `${station.name} · ${filialName(station.filial_id)}` : station.name;
}

interface KnownOrder {
  readonly order_id: number;
  readonly order_display_number: number;
  readonly station_id: number;
}

/** An order by the number that people know, which its station counts. */
export function orderText(orders: readonly KnownOrder[], id: number): string {
  const order = orders.find(({ order_id }) => order_id === id);
  return order === undefined ? `#${id}` : words().orderAt(order.order_display_number, stationName(order.station_id));
}
