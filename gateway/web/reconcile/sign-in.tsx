import { call } from "../shared/call.ts";
import type { Failure } from "../shared/failures.ts";
import { LanguageSwitch } from "../shared/language-switch.tsx";
import { SignInForm } from "../shared/sign-in-form.tsx";
import { begin, person } from "./known.ts";
import { words } from "./words.ts";

async function signIn(email: string, password: string): Promise<Failure | null> {
  const signedIn = await call("POST /api/reconciliation/v1/session/", { body: { email, password } });
  if (!signedIn.ok) return signedIn;
  // What an earlier session has loaded may be another person's.
  if (person.peek()) location.reload();
  else await begin();
  return null;
}

export function SignIn() {
  return (
    <main class="sign-in stack">
      <div class="row row-spread">
        <h1>{words().title}</h1>
        <LanguageSwitch />
      </div>
      <SignInForm class="card stack" signIn={signIn} />
    </main>
  );
}
