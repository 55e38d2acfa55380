/** The first minute: the link that a start prints opens till, display, phone and companion side by side, signed in. */

import { language } from "../shared/language.ts";
import { LanguageSwitch } from "../shared/language-switch.tsx";
import { startPage } from "../shared/page.tsx";
import { FailureNotice, Notice, Skeleton } from "../shared/states.tsx";
import { CompanionView } from "./companion.tsx";
import { open, opening, type Place } from "./opening.ts";
import { Phone } from "./phone.tsx";
import { useCompanion, useLive } from "./station.ts";
import { words } from "./words.ts";
import "./start.css";

/** The token of the one-time link that a start prints: `/start/#dpl_…`. A browser never sends a fragment to a server. */
const token = /^#(dpl_[\w-]{1,190})$/.exec(location.hash)?.[1];
// Removes it from the address bar and the history, before other code can read it.
if (location.hash !== "") history.replaceState(null, "", location.pathname);

function Start() {
  const { value } = opening;
  return (
    <>
      <header class="top">
        <h1>{words().title}</h1>
        <nav class="row" aria-label={words().more}>
          <a href="/back/">{words().back}</a>
          <a href="/reconcile/">{words().reconcile}</a>
          <a href="/docs/">{words().docs}</a>
          <LanguageSwitch />
        </nav>
      </header>
      <main class="start-main stack">
        {value.step === "opening" && <Skeleton />}
        {value.step === "failed" && <FailureNotice failure={value.failure} onRetry={() => open()} />}
        {(value.step === "used" || value.step === "no_link") && <SignInPages isUsed={value.step === "used"} />}
        {value.step === "open" && <SideBySide place={value.place} />}
      </main>
    </>
  );
}

function SignInPages({ isUsed }: { readonly isUsed: boolean }) {
  return (
    <>
      <Notice tone="warn" title={isUsed ? words().used : words().noLink} isUrgent>
        <p>{words().signInInstead}</p>
      </Notice>
      <p class="row">
        <a class="button button-main" href="/till/">
          {words().till}
        </a>
        <a class="button" href="/display/">
          {words().display}
        </a>
        <a class="button" href="/back/">
          {words().back}
        </a>
        <a class="button" href="/reconcile/">
          {words().reconcile}
        </a>
      </p>
    </>
  );
}

/** A new language reloads the frames, because a page reads the language when it starts. No data is lost. */
function SideBySide({ place }: { readonly place: Place }) {
  useLive(place.stationId);
  useCompanion(place.companionId);
  return (
    <>
      <ol class="start-steps">
        {Object.values(words().steps).map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ol>
      <div class="start-side">
        <iframe key={`till ${language.value}`} class="start-till" src={place.tillAddress} title={words().till} />
        <div class="start-guest">
          <iframe
            key={`display ${language.value}`}
            class="start-display"
            src={place.displayAddress}
            title={words().display}
          />
          <Phone />
          <CompanionView isThere={place.companionId !== null} />
        </div>
      </div>
    </>
  );
}

void open(token);
startPage(<Start />, () => words().title);
