import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Button } from "../shared/button.tsx";
import { call } from "../shared/call.ts";
import { LanguageSwitch } from "../shared/language-switch.tsx";
import { PasswordDialog } from "../shared/password-dialog.tsx";
import { sharedWords } from "../shared/words.ts";
import { mayDrive } from "./live.ts";
import { session, signOut } from "./session.ts";
import { useHeading } from "./use-heading.ts";

/** The title, the signed-in person, and the buttons for language, password and sign-out. */
export function Header({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  const isChanging = useSignal(false);
  const heading = useHeading(`${title} ${mayDrive.value}`);
  return (
    <header class="top">
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      <div class="top-middle">{children}</div>
      <div class="row">
        <span class="top-name soft">{session.value?.user.name}</span>
        <LanguageSwitch />
        <Button kind="quiet" onClick={() => (isChanging.value = true)}>
          {sharedWords().changePassword}
        </Button>
        <Button kind="quiet" onClick={signOut}>
          {sharedWords().signOut}
        </Button>
      </div>
      {isChanging.value && (
        <PasswordDialog
          change={(body) => call("PUT /api/cashier/v1/session/password/", { body })}
          onClose={() => (isChanging.value = false)}
        />
      )}
    </header>
  );
}
