/** Changes answers of the service, as if they came from a later version or from another clock. */
import type { ChangedAnswer } from "./observer.ts";

const SKEW_MS = 10 * 60_000;
const DATE_TIME = /^\d{4}-\d\d-\d\dT/;

/** Adds to each object a field that the contract does not have. */
export function laterFields(answer: ChangedAnswer): void {
  answer.json = mapped(answer.json, (value) => value, { x_later: { since: 2 } }) as Record<string, unknown>;
}

const older = (value: unknown): unknown =>
  typeof value === "string" && DATE_TIME.test(value) ? new Date(Date.parse(value) - SKEW_MS).toISOString() : value;

/** Moves all times ten minutes back. For a device that uses its local clock, each deadline has then passed. */
export function olderClock(answer: ChangedAnswer): void {
  answer.json = mapped(answer.json, older) as Record<string, unknown>;
}

/** Gives each answer a new ETag, although nothing has changed. */
export function newEtag({ headers }: ChangedAnswer): void {
  if (headers.has("etag")) headers.set("etag", `"${Math.random().toString(36).slice(2)}"`);
}

function mapped(value: unknown, change: (value: unknown) => unknown, more: object = {}): unknown {
  if (Array.isArray(value)) return value.map((each) => mapped(each, change, more));
  if (typeof value !== "object" || value === null) return change(value);
  const entries = Object.entries(value).map(([name, each]) => [name, mapped(each, change, more)] as const);
  return { ...Object.fromEntries(entries), ...more };
}
