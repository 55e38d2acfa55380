/** Who is signed in. A session that ends in the middle of something leaves the section as it is and asks to sign in again. */
import { signal } from "@preact/signals";
import { call, hasNoSession } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { keepOnePerson } from "../../shared/one-person.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { readAgain } from "../../shared/use-load.ts";

export type Person = ReplyOf<"GET /api/backoffice/v1/session/">["user"];

/** Undefined until the service has answered; null when no person is logged in. */
export const person = signal<Person | null | undefined>(undefined);
/** Why it is not known who is signed in. */
export const sessionFailure = signal<Failure | null>(null);
export async function readSession(): Promise<void> {
  const result = await call("GET /api/backoffice/v1/session/");
  sessionFailure.value = null;
  if (result.ok) {
    begin(result.reply.user);
  } else if (hasNoSession.value || result.code === "permission_denied") {
    person.value = null;
  } else {
    sessionFailure.value = result;
  }
}

export async function signIn(email: string, password: string): Promise<Failure | null> {
  const result = await call("POST /api/backoffice/v1/session/", { body: { email, password } });
  if (!result.ok) return result;
  const before = person.peek();
  const { user } = result.reply;
  begin(user);
  hasNoSession.value = false;
  // Another person must not see what the one before has loaded.
  if (before !== undefined && before !== null && before.user_id !== user.user_id) location.reload();
  readAgain();
  return null;
}

function begin(found: Person): void {
  person.value = found;
  keepOnePerson("backoffice", found.user_id);
}

export async function signOut(): Promise<void> {
  const result = await call("DELETE /api/backoffice/v1/session/");
  if (!result.ok && !hasNoSession.value) {
    sessionFailure.value = result;
    return;
  }
  // Nothing that was loaded stays in the page.
  location.assign("/back/");
}
