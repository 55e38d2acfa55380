import { useSignal } from "@preact/signals";
import { Button } from "../../shared/button.tsx";
import type { Failure } from "../../shared/failures.ts";
import { Field } from "../../shared/field.tsx";
import { FailureNotice } from "../../shared/states.tsx";
import { sharedWords } from "../../shared/words.ts";
import { signIn } from "./session.ts";

export function SignIn() {
  const email = useSignal("");
  const password = useSignal("");
  const failure = useSignal<Failure | null>(null);
  const isBusy = useSignal(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy.peek()) return;
    isBusy.value = true;
    failure.value = await signIn(email.value.trim(), password.value);
    isBusy.value = false;
    if (failure.value !== null) password.value = "";
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      {failure.value !== null && <FailureNotice failure={failure.value} />}
      <Field
        label={sharedWords().email}
        type="email"
        autoComplete="username"
        value={email.value}
        onInput={(value) => {
          email.value = value;
        }}
        required
      />
      <Field
        label={sharedWords().password}
        type="password"
        autoComplete="current-password"
        value={password.value}
        onInput={(value) => {
          password.value = value;
        }}
        required
      />
      <Button kind="main" submit busy={isBusy.value}>
        {sharedWords().signIn}
      </Button>
    </form>
  );
}
