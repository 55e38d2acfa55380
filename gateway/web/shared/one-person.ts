/**
 * A browser has one session of each API, and all its tabs use it. When a person signs in on one tab, the tabs that ask for a
 * sign-in read the session again. A tab of another person reloads, so that no tab acts under another person's name.
 */
import { hasNoSession } from "./call.ts";

type Api = "backoffice" | "cashier" | "reconciliation";

let followed: { readonly key: string; readonly readSession: () => unknown } | undefined;
let mine: string | undefined;

addEventListener("storage", ({ key, newValue }) => {
  if (followed === undefined || key !== followed.key || newValue === null) return;
  if (mine !== undefined && !newValue.startsWith(`${mine} `)) location.reload();
  else if (hasNoSession.peek()) followed.readSession();
});

/** The page calls it once. `readSession` must call `keepOnePerson` when it finds a session. */
export function followSignIns(api: Api, readSession: () => unknown): void {
  followed = { key: `dp_person_${api}`, readSession };
}

/** The page calls it with the person of each session that it finds or begins. */
export function keepOnePerson(userId: number): void {
  mine = String(userId);
  if (followed === undefined) return;
  try {
    // The time makes each sign-in another value: only a change notifies the other tabs.
    localStorage.setItem(followed.key, `${mine} ${Date.now()}`);
  } catch {
    // A browser that stores nothing does not notify other tabs.
  }
}
