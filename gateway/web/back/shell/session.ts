/** Who is signed in. When a session ends, the section stays as it is, and a dialog asks the person to sign in again. */
import { signal } from "@preact/signals";
import { call, hasNoSession } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { followSignIns, keepOnePerson } from "../../shared/one-person.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { isSigningOut } from "../../shared/session-ended.tsx";
import { readAgain } from "../../shared/use-load.ts";

type Person = ReplyOf<"GET /api/backoffice/v1/session/">["user"];

/** Undefined until the service has answered; null when no person is signed in. */
export const person = signal<Person | null | undefined>(undefined);
/** Why the page could not read or end the session. */
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
  continueAs(result.reply.user);
  return null;
}

followSignIns("backoffice", async () => {
  const result = await call("GET /api/backoffice/v1/session/");
  if (result.ok) continueAs(result.reply.user);
});

function continueAs(found: Person): void {
  const before = person.peek();
  begin(found);
  hasNoSession.value = false;
  // Another person must not see the data that the previous person loaded.
  if (before !== undefined && before !== null && before.user_id !== found.user_id) location.reload();
  readAgain();
}

function begin(found: Person): void {
  person.value = found;
  keepOnePerson(found.user_id);
}

export async function signOut(): Promise<void> {
  isSigningOut.value = true;
  const result = await call("DELETE /api/backoffice/v1/session/");
  if (!result.ok && !hasNoSession.value) {
    isSigningOut.value = false;
    sessionFailure.value = result;
    return;
  }
  // Nothing that was loaded stays in the page.
  location.assign("/back/");
}
