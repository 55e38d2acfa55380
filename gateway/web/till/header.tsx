import type { ComponentChildren } from "preact";
import { Button } from "../shared/button.tsx";
import { LanguageSwitch } from "../shared/language-switch.tsx";
import { sharedWords } from "../shared/words.ts";
import { session, signOut } from "./session.ts";

/** Who is here, and how to leave. */
export function Header({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <header class="top">
      <h1>{title}</h1>
      <div class="top-middle">{children}</div>
      <div class="row">
        <span class="soft">{session.value?.user.name}</span>
        <LanguageSwitch />
        <Button kind="quiet" onClick={signOut}>
          {sharedWords().signOut}
        </Button>
      </div>
    </header>
  );
}
