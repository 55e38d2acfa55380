/** The till: sign in, choose a station, collect. */
import { useEffect } from "preact/hooks";
import { LanguageSwitch } from "../shared/language-switch.tsx";
import { startPage } from "../shared/page.tsx";
import { SessionEnded } from "../shared/session-ended.tsx";
import { SignInForm } from "../shared/sign-in-form.tsx";
import { FailureNotice, Skeleton } from "../shared/states.tsx";
import { loadSession, session, sessionFailure, signIn, stationId } from "./session.ts";
import { StationView } from "./station.tsx";
import { Stations } from "./stations.tsx";
import "./till.css";
import { words } from "./words.ts";

function Till() {
  useEffect(() => void loadSession(), []);
  if (session.value === undefined) {
    const failure = sessionFailure.value;
    return (
      <main class="till-main">
        <h1 class="for-readers">{words().title}</h1>
        {failure === null ? <Skeleton /> : <FailureNotice failure={failure} onRetry={loadSession} />}
      </main>
    );
  }
  if (session.value === null) return <SignIn />;
  return (
    <>
      {stationId.value === null ? <Stations /> : <StationView key={stationId.value} stationId={stationId.value} />}
      <SessionEnded signIn={signIn}>
        <p>{words().goesOn}</p>
      </SessionEnded>
    </>
  );
}

function SignIn() {
  return (
    <main class="sign-in">
      <SignInForm class="card stack" signIn={signIn}>
        <div class="row row-spread">
          <h1>{words().signInTitle}</h1>
          <LanguageSwitch />
        </div>
      </SignInForm>
    </main>
  );
}

startPage(<Till />, () => words().title);
