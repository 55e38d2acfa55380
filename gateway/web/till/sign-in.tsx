import { useSignal } from "@preact/signals";
import { Button } from "../shared/button.tsx";
import type { Failure } from "../shared/failures.ts";
import { Field } from "../shared/field.tsx";
import { LanguageSwitch } from "../shared/language-switch.tsx";
import { FailureNotice, Notice } from "../shared/states.tsx";
import { sharedWords } from "../shared/words.ts";
import { hasEnded, signIn } from "./session.ts";
import { words } from "./words.ts";

export function SignIn() {
  const email = useSignal("");
  const password = useSignal("");
  const failure = useSignal<Failure | null>(null);
  const isBusy = useSignal(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy.peek() || email.value === "" || password.value === "") return;
    isBusy.value = true;
    failure.value = await signIn(email.value, password.value);
    isBusy.value = false;
  };
  return (
    <main class="sign-in">
      <form class="card stack" onSubmit={(event) => void submit(event)}>
        <div class="row row-spread">
          <h1>{words().signInTitle}</h1>
          <LanguageSwitch />
        </div>
        {hasEnded.value && <Notice tone="warn" title={words().sessionEnded} isUrgent />}
        {failure.value !== null && <FailureNotice failure={failure.value} />}
        <Field
          label={sharedWords().email}
          type="email"
          autoComplete="username"
          value={email.value}
          onInput={(value) => (email.value = value)}
        />
        <Field
          label={sharedWords().password}
          type="password"
          autoComplete="current-password"
          value={password.value}
          onInput={(value) => (password.value = value)}
        />
        <Button kind="main" submit busy={isBusy.value} class="button-wide">
          {sharedWords().signIn}
        </Button>
      </form>
    </main>
  );
}
