import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Button } from "./button.tsx";
import type { Failure } from "./failures.ts";
import { Field } from "./field.tsx";
import { FailureNotice } from "./states.tsx";
import { sharedWords } from "./words.ts";

interface SignInFormProps {
  /** Null when the person is signed in. */
  readonly signIn: (email: string, password: string) => Promise<Failure | null>;
  readonly class?: string;
  /** The content above the fields. */
  readonly children?: ComponentChildren;
}

/** The sign-in form of all pages. A failure clears the password and keeps the email address. */
export function SignInForm({ signIn, class: className = "stack", children }: SignInFormProps) {
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
    <form class={className} onSubmit={(event) => void submit(event)}>
      {children}
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
      <Button kind="main" submit busy={isBusy.value} class="button-wide">
        {sharedWords().signIn}
      </Button>
    </form>
  );
}
