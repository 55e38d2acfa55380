/** The virtual companion: whether it is online, and what it does now. */
import { now } from "../shared/clock.ts";
import { Tag } from "../shared/states.tsx";
import { sharedWords } from "../shared/words.ts";
import { companion, live } from "./station.ts";
import { words } from "./words.ts";

/** One sentence about the current collection. */
function activity(): string {
  const intent = live.value?.active_intent ?? null;
  if (intent === null || intent.device_id === null) return words().companionWaits;
  const report = intent.reports[intent.reports.length - 1];
  if (report !== undefined) return words().reported(words()[report.outcome]);
  return intent.status === "created" ? words().companionFetches : words().companionAsks;
}

export function CompanionView({ isThere }: { readonly isThere: boolean }) {
  const known = companion.value;
  const isOnline = known?.liveness?.online === true;
  const beat = known?.last_heartbeat ?? null;
  return (
    <section class="card stack-tight" aria-labelledby="companion">
      <h2 id="companion">{words().companion}</h2>
      {!isThere && <p>{words().noCompanion}</p>}
      {known !== null && (
        <>
          <p>
            {known.name} <Tag tone={isOnline ? "good" : "bad"}>{isOnline ? words().online : words().offline}</Tag>
          </p>
          <p aria-live="polite">{isOnline ? activity() : words().companionOffline}</p>
          {beat !== null && (
            <p class="small soft numbers">
              {words().heartbeat}{" "}
              {sharedWords().age(Math.max(0, Math.round((now.value - Date.parse(beat.at)) / 1_000)))}
            </p>
          )}
        </>
      )}
    </section>
  );
}
