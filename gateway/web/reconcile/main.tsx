import { LanguageSwitch } from "../shared/language-switch.tsx";
import { startPage } from "../shared/page.tsx";
import { words } from "./words.ts";

function Reconcile() {
  return (
    <main class="skeleton stack">
      <div class="row row-spread">
        <h1>{words().title}</h1>
        <LanguageSwitch />
      </div>
    </main>
  );
}

startPage(<Reconcile />);
