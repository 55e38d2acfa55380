/** A session that ends while a person works: the page stays as it is beneath the question, with everything that was typed. */
import type { ComponentChildren } from "preact";
import { hasNoSession } from "./call.ts";
import { Dialog } from "./dialog.tsx";
import type { Failure } from "./failures.ts";
import { SignInForm } from "./sign-in-form.tsx";
import { sharedWords } from "./words.ts";

interface SessionEndedProps {
  readonly signIn: (email: string, password: string) => Promise<Failure | null>;
  /** What goes on meanwhile. */
  readonly children?: ComponentChildren;
}

/** Last in the page, so that it stands above every other dialog. */
export function SessionEnded({ signIn, children }: SessionEndedProps) {
  if (!hasNoSession.value) return null;
  return (
    <Dialog title={sharedWords().sessionEnded} onClose={() => undefined}>
      <p>{sharedWords().sessionEndedText}</p>
      {children}
      <SignInForm signIn={signIn} />
    </Dialog>
  );
}
