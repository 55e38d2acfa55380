/** The till: sign in, choose a station, collect. */
import { useEffect } from "preact/hooks";
import { startPage } from "../shared/page.tsx";
import { FailureNotice, Skeleton } from "../shared/states.tsx";
import { loadSession, session, sessionFailure, stationId } from "./session.ts";
import { SignIn } from "./sign-in.tsx";
import { StationView } from "./station.tsx";
import { Stations } from "./stations.tsx";
import "./till.css";

function Till() {
  useEffect(() => void loadSession(), []);
  if (session.value === undefined) {
    return sessionFailure.value === null ? (
      <Skeleton />
    ) : (
      <main class="sign-in">
        <FailureNotice failure={sessionFailure.value} onRetry={loadSession} />
      </main>
    );
  }
  if (session.value === null) return <SignIn />;
  if (stationId.value === null) return <Stations />;
  return <StationView key={stationId.value} stationId={stationId.value} />;
}

startPage(<Till />);
