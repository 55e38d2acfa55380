/** The frame around each section: menu, person and language. Without a session it shows the sign-in form. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { Button } from "../../shared/button.tsx";
import { call } from "../../shared/call.ts";
import { LanguageSwitch } from "../../shared/language-switch.tsx";
import { PasswordDialog } from "../../shared/password-dialog.tsx";
import { SessionEnded } from "../../shared/session-ended.tsx";
import { SignInForm } from "../../shared/sign-in-form.tsx";
import { FailureNotice, Skeleton } from "../../shared/states.tsx";
import { sharedWords } from "../../shared/words.ts";
import { closeDialog, DialogPlace, showDialog } from "./dialogs.tsx";
import { person, readSession, sessionFailure, signIn, signOut } from "./session.ts";
import { shellWords } from "./words.ts";

type SectionName = keyof ReturnType<typeof shellWords>["nav"];
type GroupName = keyof ReturnType<typeof shellWords>["groups"];
export interface SectionGroup {
  readonly group: GroupName;
  readonly sections: Readonly<Partial<Record<SectionName, FunctionComponent>>>;
}

export function Frame({ groups }: { readonly groups: readonly SectionGroup[] }) {
  const { path } = useLocation();
  useEffect(() => {
    void readSession();
  }, []);
  const current = path.split("/")[2] ?? Object.keys(groups[0]?.sections ?? {})[0] ?? "";
  // The address may contain any word, also one that every object inherits, such as "constructor".
  const group = groups.find(({ sections }) => Object.keys(sections).includes(current));
  const found = group?.sections[current as SectionName];
  const title = found === undefined ? shellWords().title : shellWords().nav[current as SectionName];
  useEffect(() => {
    document.title = `${title} · ${shellWords().title}`;
  }, [title]);
  if (person.value === undefined) {
    return (
      <main class="gate">
        {sessionFailure.value === null ? (
          <Skeleton />
        ) : (
          <div class="stack">
            <h1>{shellWords().title}</h1>
            <FailureNotice failure={sessionFailure.value} onRetry={readSession} />
          </div>
        )}
      </main>
    );
  }
  if (person.value === null) return <Gate />;
  const Section = found;
  return (
    <div class="frame">
      <a class="skip" href="#content">
        {shellWords().skip}
      </a>
      <Menu groups={groups} current={current} />
      <main id="content" class="content stack" tabIndex={-1}>
        {sessionFailure.value !== null && <FailureNotice failure={sessionFailure.value} onRetry={signOut} />}
        {Section === undefined ? (
          <>
            <h1>{shellWords().notFound}</h1>
            <p>{shellWords().notFoundText}</p>
          </>
        ) : (
          <Section key={current} />
        )}
      </main>
      <DialogPlace />
      <SessionEnded signIn={signIn} />
    </div>
  );
}

function Gate() {
  return (
    <main class="gate">
      <div class="gate-box card stack">
        <div class="row row-spread">
          <h1>{shellWords().title}</h1>
          <LanguageSwitch />
        </div>
        <p class="soft">{shellWords().signInIntro}</p>
        <SignInForm signIn={signIn} />
      </div>
    </main>
  );
}

const sendPassword: Parameters<typeof PasswordDialog>[0]["change"] = (body) =>
  call("PUT /api/backoffice/v1/session/password/", { body });

/** Changes the password of the signed-in person. The people section resets those of others. */
export function changePassword(): void {
  showDialog(<PasswordDialog change={sendPassword} onClose={closeDialog} />);
}

function Menu({ groups, current }: { readonly groups: readonly SectionGroup[]; readonly current: string }) {
  const isOpen = useSignal(false);
  const isFirst = useRef(true);
  useEffect(() => {
    isOpen.value = false;
    // A new section starts at its top, also for a screen reader.
    if (!isFirst.current) {
      scrollTo(0, 0);
      document.getElementById("content")?.focus();
    }
    isFirst.current = false;
  }, [current]);
  return (
    <header class="menu">
      <div class="menu-top">
        <p class="menu-title">{shellWords().title}</p>
        <button
          type="button"
          class="button menu-button"
          aria-expanded={isOpen.value}
          aria-controls="menu"
          onClick={() => {
            isOpen.value = !isOpen.value;
          }}
        >
          {shellWords().menu}
        </button>
      </div>
      <div id="menu" class={isOpen.value ? "menu-body menu-open" : "menu-body"}>
        <nav aria-label={shellWords().sections}>
          {groups.map(({ group, sections }) => (
            <div key={group} class="menu-group">
              <p class="menu-heading">{shellWords().groups[group]}</p>
              <ul>
                {(Object.keys(sections) as SectionName[]).map((name) => (
                  <li key={name}>
                    <a class="menu-link" href={`/back/${name}/`} aria-current={name === current ? "page" : undefined}>
                      {shellWords().nav[name]}
                    </a>
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </nav>
        <div class="menu-end stack-tight">
          <p class="small soft">{person.value?.name}</p>
          <div class="row row-spread">
            <LanguageSwitch />
            <Button kind="quiet" onClick={signOut}>
              {sharedWords().signOut}
            </Button>
          </div>
          <Button kind="quiet" onClick={changePassword}>
            {sharedWords().changePassword}
          </Button>
        </div>
      </div>
    </header>
  );
}

interface SectionHeadProps {
  readonly name: SectionName;
  readonly intro?: string;
  /** The main action of the section. */
  readonly children?: ComponentChildren;
}

export function SectionHead({ name, intro, children }: SectionHeadProps) {
  return (
    <div class="section-head">
      <div>
        <h1>{shellWords().nav[name]}</h1>
        {intro !== undefined && <p class="soft">{intro}</p>}
      </div>
      {children !== undefined && <div class="row">{children}</div>}
    </div>
  );
}

/** A list of labels and values that describes one thing. */
export function Facts({ of }: { readonly of: readonly (readonly [label: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {of.map(([label, value]) => (
        <div key={label} class="fact">
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
