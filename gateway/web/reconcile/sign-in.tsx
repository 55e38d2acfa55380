import { call } from "../shared/call.ts";
import type { Failure } from "../shared/failures.ts";
import { LanguageSwitch } from "../shared/language-switch.tsx";
import { followSignIns, keepOnePerson } from "../shared/one-person.ts";
import { SignInForm } from "../shared/sign-in-form.tsx";
import { readAgain } from "../shared/use-load.ts";
import { begin, type Person, person } from "./known.ts";
import { words } from "./words.ts";

export async function signIn(email: string, password: string): Promise<Failure | null> {
  const signedIn = await call("POST /api/reconciliation/v1/session/", { body: { email, password } });
  if (!signedIn.ok) return signedIn;
  await continueAs(signedIn.reply.user);
  return null;
}

followSignIns("reconciliation", async () => {
  const session = await call("GET /api/reconciliation/v1/session/");
  if (session.ok) await continueAs(session.reply.user);
});

async function continueAs(found: Person): Promise<void> {
  const before = person.peek();
  keepOnePerson(found.user_id);
  // Another person must not see the data that the previous person loaded.
  if (before && before.user_id !== found.user_id) location.reload();
  else if (before) readAgain();
  else await begin();
}

export function SignIn() {
  return (
    <main class="sign-in">
      <SignInForm class="card stack" signIn={signIn}>
        <div class="row row-spread">
          <h1>{words().title}</h1>
          <LanguageSwitch />
        </div>
      </SignInForm>
    </main>
  );
}
