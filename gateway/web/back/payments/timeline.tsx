/** The timeline of one payment in sentences, for the case that a guest complains. */
import { call } from "../../shared/call.ts";
import { dateAndClockTime } from "../../shared/format.ts";
import { Notice, ServiceSentence, Tag, type Tone } from "../../shared/states.tsx";
import { useLoad } from "../../shared/use-load.ts";
import { useFilters } from "../shell/filters.tsx";
import { SectionHead } from "../shell/frame.tsx";
import { LoadedView } from "../shell/loading.tsx";
import { StatusTag } from "../shell/status-tag.tsx";
import { actorText, type Entry, stepText } from "./step-texts.ts";
import { words } from "./words.ts";

const EVERY_MS = 3_000;
const TONES: Readonly<Record<"no" | "yes" | "maybe", Exclude<Tone, "accent">>> = {
  no: "plain",
  yes: "good",
  maybe: "warn",
};

export function Timeline({ intentId }: { readonly intentId: number }) {
  const filters = useFilters();
  const timeline = useLoad(
    `timeline ${intentId}`,
    () => call("GET /api/backoffice/v1/intents/{intent_id}/timeline/", { path: { intent_id: intentId } }),
    { everyMs: EVERY_MS },
  );
  return (
    <>
      <SectionHead name="payments" />
      <p>
        <a href={filters.addressWith({ payment: "" })}>{words().back}</a>
      </p>
      <LoadedView of={timeline}>
        {({ status, summary, money_moved, entries }) => (
          <section class="card stack" aria-labelledby="payment">
            <div class="section-head">
              <h2 id="payment">{words().payment(intentId)}</h2>
              <StatusTag status={status} />
            </div>
            <Notice tone={TONES[money_moved]} title={words().moved[money_moved]}>
              <ServiceSentence text={null} english={summary} />
            </Notice>
            <h3>{words().timeline}</h3>
            <ol class="timeline">
              {entries.map((entry, index) => (
                <li key={index}>
                  <p class="small soft">
                    {dateAndClockTime(entry.at)} {entry.actor.name !== "" && `${words().by} ${actorText(entry)}`}
                  </p>
                  <Step entry={entry} />
                </li>
              ))}
            </ol>
          </section>
        )}
      </LoadedView>
    </>
  );
}

function Step({ entry }: { readonly entry: Entry }) {
  const text = stepText(entry);
  const hasData = Object.keys(entry.data).length > 0;
  return (
    <>
      <p>
        {text ?? <span lang="en">{entry.sentence}</span>}{" "}
        {entry.money_moved !== "no" && <Tag tone={TONES[entry.money_moved]}>{words().moved[entry.money_moved]}</Tag>}
      </p>
      {(hasData || text !== null) && (
        <details>
          <summary class="small">{words().details}</summary>
          {text !== null && <p lang="en">{entry.sentence}</p>}
          {hasData && <pre>{JSON.stringify(entry.data, null, 2)}</pre>}
        </details>
      )}
    </>
  );
}
