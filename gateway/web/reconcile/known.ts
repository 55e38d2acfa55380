/** What every section needs: who is signed in, the accounts, and the people who decide. */
import { signal } from "@preact/signals";
import { call } from "../shared/call.ts";
import type { Failure } from "../shared/failures.ts";
import type { ReplyOf } from "../shared/operations.ts";

export type Person = ReplyOf<"GET /api/reconciliation/v1/session/">["user"];
export type Account = ReplyOf<"GET /api/reconciliation/v1/accounts/">["statement_accounts"][number];
type Operator = ReplyOf<"GET /api/reconciliation/v1/operators/">["operators"][number];

/** Undefined until it is known whether a person is signed in; null when no person is. */
export const person = signal<Person | null | undefined>(undefined);
export const accounts = signal<readonly Account[]>([]);
export const operators = signal<readonly Operator[]>([]);
/** Why the page could not begin. */
export const beginFailure = signal<Failure | null>(null);

/** More accounts than an organization has; each page is 500. */
const MOST_PAGES = 20;

export async function begin(): Promise<void> {
  beginFailure.value = null;
  const session = await call("GET /api/reconciliation/v1/session/");
  if (session.ok) {
    person.value = session.reply.user;
    await loadKnown();
  } else if (session.code === "session_missing" || session.code === "session_invalid") person.value = null;
  else beginFailure.value = session;
}

export async function loadKnown(): Promise<void> {
  const [found, people] = await Promise.all([allAccounts(), call("GET /api/reconciliation/v1/operators/")]);
  accounts.value = found;
  if (people.ok) operators.value = people.reply.operators;
}

async function allAccounts(): Promise<readonly Account[]> {
  const found: Account[] = [];
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const since_id = found[found.length - 1]?.account_id ?? 0;
    const listed = await call("GET /api/reconciliation/v1/accounts/", { query: { since_id, limit: 500 } });
    if (!listed.ok) break;
    found.push(...listed.reply.statement_accounts);
    if (!listed.reply.has_more) break;
  }
  return found;
}

/** The name of an issue's account, for example of `statement:3`. */
export function accountName(key: string): string {
  const [source, id] = key.split(":");
  const account =
    source === "statement" ? accounts.value.find(({ account_id }) => String(account_id) === id) : undefined;
  return account?.name ?? key;
}

export const operatorName = (userId: number | null): string =>
  operators.value.find(({ user_id }) => user_id === userId)?.name ?? (userId === null ? "" : `#${userId}`);

/** Each filial that has an account. */
export function filialIds(): readonly number[] {
  const ids = accounts.value.map(({ filial_id }) => filial_id).filter((id): id is number => id !== null);
  return [...new Set(ids)];
}
