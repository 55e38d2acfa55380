import { useSignal } from "@preact/signals";
import { Button } from "../shared/button.tsx";
import { call } from "../shared/call.ts";
import type { Failure } from "../shared/failures.ts";
import { Field } from "../shared/field.tsx";
import { LanguageSwitch } from "../shared/language-switch.tsx";
import { FailureNotice } from "../shared/states.tsx";
import { sharedWords } from "../shared/words.ts";
import { begin } from "./known.ts";
import { words } from "./words.ts";

export function SignIn() {
  const email = useSignal("");
  const password = useSignal("");
  const failure = useSignal<Failure | null>(null);
  const isBusy = useSignal(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy.peek()) return;
    isBusy.value = true;
    const body = { email: email.peek(), password: password.peek() };
    const signedIn = await call("POST /api/reconciliation/v1/session/", { body });
    failure.value = signedIn.ok ? null : signedIn;
    if (signedIn.ok) await begin();
    isBusy.value = false;
  };
  return (
    <main class="sign-in stack">
      <div class="row row-spread">
        <h1>{words().title}</h1>
        <LanguageSwitch />
      </div>
      <form class="card stack" onSubmit={(event) => void submit(event)}>
        <Field
          label={sharedWords().email}
          type="email"
          autoComplete="username"
          value={email.value}
          onInput={(value) => {
            email.value = value;
          }}
        />
        <Field
          label={sharedWords().password}
          type="password"
          autoComplete="current-password"
          value={password.value}
          onInput={(value) => {
            password.value = value;
          }}
        />
        {failure.value !== null && <FailureNotice failure={failure.value} />}
        <p>
          <Button submit kind="main" busy={isBusy.value}>
            {sharedWords().signIn}
          </Button>
        </p>
      </form>
    </main>
  );
}
