/** Asks a person to sign in again when the session ends. The page below the dialog stays as it is, with all typed text. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { hasNoSession } from "./call.ts";
import { Dialog } from "./dialog.tsx";
import type { Failure } from "./failures.ts";
import { SignInForm } from "./sign-in-form.tsx";
import { sharedWords } from "./words.ts";

/** Set it during a sign-out: other answers may report the end of the session first, and the page must not ask to sign in again. */
export const isSigningOut = signal(false);

interface SessionEndedProps {
  readonly signIn: (email: string, password: string) => Promise<Failure | null>;
  /** A text about work that continues meanwhile. */
  readonly children?: ComponentChildren;
}

/** Render it last in the page, so that it is above every other dialog. */
export function SessionEnded({ signIn, children }: SessionEndedProps) {
  if (!hasNoSession.value || isSigningOut.value) return null;
  return (
    <Dialog title={sharedWords().sessionEnded} onClose={() => undefined}>
      <p>{sharedWords().sessionEndedText}</p>
      {children}
      <SignInForm signIn={signIn} />
    </Dialog>
  );
}
