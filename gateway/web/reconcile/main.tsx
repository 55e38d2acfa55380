/** The reconciliation page: differences between statements and payments, and people's decisions about them. */
import { signal } from "@preact/signals";
import { Button } from "../shared/button.tsx";
import { call, hasNoSession } from "../shared/call.ts";
import { LanguageSwitch } from "../shared/language-switch.tsx";
import { startPage } from "../shared/page.tsx";
import { PasswordDialog } from "../shared/password-dialog.tsx";
import { isSigningOut, SessionEnded } from "../shared/session-ended.tsx";
import { FailureNotice, Skeleton } from "../shared/states.tsx";
import { toastFailure } from "../shared/toasts.tsx";
import { sharedWords } from "../shared/words.ts";
import { followLink, go, SECTIONS, type Section, section } from "./address.ts";
import { ImportsSection } from "./imports/imports-section.tsx";
import { IssuesSection } from "./issues/issues-section.tsx";
import { begin, beginFailure, person } from "./known.ts";
import { PeriodsSection } from "./periods-section.tsx";
import { ReportSection } from "./report-section.tsx";
import "./reconcile.css";
import { SignIn, signIn } from "./sign-in.tsx";
import { words } from "./words.ts";

const CONTENT = {
  issues: IssuesSection,
  imports: ImportsSection,
  periods: PeriodsSection,
  report: ReportSection,
} as const;

const isChangingPassword = signal(false);

function Reconciliation() {
  if (beginFailure.value !== null || person.value === undefined) {
    return (
      <main class="sign-in stack">
        <h1>{words().title}</h1>
        {beginFailure.value === null ? (
          <Skeleton blocks={3} />
        ) : (
          <FailureNotice failure={beginFailure.value} onRetry={begin} />
        )}
      </main>
    );
  }
  if (person.value === null) return <SignIn />;
  const Content = CONTENT[section()];
  return (
    <div class="page">
      <header class="page-head">
        <h1 class="page-title">{words().title}</h1>
        <nav class="page-nav" aria-label={words().sections.label}>
          {SECTIONS.map((name) => (
            <SectionLink key={name} name={name} />
          ))}
        </nav>
        <div class="page-person">
          <span class="page-name small soft">{person.value.name}</span>
          <LanguageSwitch />
          <Button kind="quiet" onClick={() => (isChangingPassword.value = true)}>
            {sharedWords().changePassword}
          </Button>
          <Button kind="quiet" onClick={signOut}>
            {sharedWords().signOut}
          </Button>
        </div>
      </header>
      {isChangingPassword.value && (
        <PasswordDialog
          change={(body) => call("PUT /api/reconciliation/v1/session/password/", { body })}
          onClose={() => (isChangingPassword.value = false)}
        />
      )}
      <main class="page-main">
        <Content />
      </main>
      <SessionEnded signIn={signIn} />
    </div>
  );
}

/** A link that opens a section without the filters of the previous section. */
function SectionLink({ name }: { readonly name: Section }) {
  const address = `${location.pathname}?section=${name}`;
  const open = (): void => {
    history.pushState(null, "", address);
    go({}, { isStep: false });
  };
  return (
    <a
      class="nav-link"
      href={address}
      onClick={(event) => followLink(event, open)}
      aria-current={section() === name ? "page" : undefined}
    >
      {words().sections[name]}
    </a>
  );
}

async function signOut(): Promise<void> {
  isSigningOut.value = true;
  const ended = await call("DELETE /api/reconciliation/v1/session/");
  // A new page load removes all loaded data: the next person may belong to another organization.
  if (ended.ok || hasNoSession.peek()) location.assign(location.pathname);
  else {
    isSigningOut.value = false;
    toastFailure(ended);
  }
}

startPage(<Reconciliation />, () => words().title);
void begin();
