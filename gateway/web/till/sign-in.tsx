import { LanguageSwitch } from "../shared/language-switch.tsx";
import { SignInForm } from "../shared/sign-in-form.tsx";
import { signIn } from "./session.ts";
import { words } from "./words.ts";

export function SignIn() {
  return (
    <main class="sign-in">
      <SignInForm class="card stack" signIn={signIn}>
        <div class="row row-spread">
          <h1>{words().signInTitle}</h1>
          <LanguageSwitch />
        </div>
      </SignInForm>
    </main>
  );
}
