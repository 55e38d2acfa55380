/** The collections of today at this station, each with its steps. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "../shared/call.ts";
import type { Failure } from "../shared/failures.ts";
import { clockTime, money } from "../shared/format.ts";
import { Empty, FailureNotice, Skeleton, Tag } from "../shared/states.tsx";
import { STATUS_TONES } from "./collection.tsx";
import { collectionName, live } from "./live.ts";
import { type Intent, unclearText } from "./reasons.ts";
import { words } from "./words.ts";

export function History({ stationId }: { readonly stationId: number }) {
  const intents = useSignal<readonly Intent[] | null>(null);
  const failure = useSignal<Failure | null>(null);
  const state = live.value;
  const active = state?.active_intent;
  // Read again when a collection begins, goes on or ends.
  const version = `${active?.intent_id} ${active?.status} ${active?.report_count} ${state?.last_ended_intent?.intent_id}`;
  const load = async (): Promise<void> => {
    const path = { station_id: stationId };
    const found = await call("GET /api/cashier/v1/stations/{station_id}/intents/", { path });
    failure.value = found.ok ? null : found;
    if (found.ok) intents.value = found.reply.intents.filter(({ created_at }) => isToday(created_at));
  };
  useEffect(() => void load(), [stationId, version]);
  const shown = intents.value;
  return (
    <section class="card stack history" aria-label={words().today}>
      <h2>{words().today}</h2>
      <UnclearCollections />
      {failure.value !== null && <FailureNotice failure={failure.value} onRetry={load} />}
      {shown === null && failure.value === null && <Skeleton blocks={1} />}
      {shown !== null && shown.length === 0 && (
        <Empty title={words().todayEmpty}>
          <p>{words().todayHelp}</p>
        </Empty>
      )}
      <ul class="stack-tight">
        {(shown ?? []).map((intent) => (
          <li key={intent.intent_id}>
            <details class="past">
              <summary>
                <span class="numbers soft">{clockTime(intent.created_at)}</span>
                <span class="past-what">
                  {words()[intent.route]} · {words().order(intent.order_display_number)}
                </span>
                <strong class="numbers">{money(intent.amount, intent.currency)}</strong>
                <Tag tone={STATUS_TONES[intent.status]}>{statusText(intent)}</Tag>
              </summary>
              <Steps intent={intent} />
            </details>
          </li>
        ))}
      </ul>
    </section>
  );
}

const isToday = (at: string): boolean => new Date(at).toDateString() === new Date().toDateString();

function statusText({ status }: Intent): string {
  if (status === "succeeded" || status === "cancelled" || status === "expired") return words()[status];
  return words().collecting;
}

interface Step {
  readonly at: string;
  readonly text: string;
}

function stepsOf(intent: Intent): readonly Step[] {
  const { attestation, provider, ended_at: endedAt } = intent;
  const steps: Step[] = [{ at: intent.created_at, text: words().stepCreated }];
  if (intent.presented_at !== null) steps.push({ at: intent.presented_at, text: words().stepPresented });
  for (const { outcome, provider_reference, reported_at } of intent.reports) {
    const what = [words()[outcome], provider_reference].filter((text) => text !== "").join(", ");
    steps.push({ at: reported_at, text: words().stepReported(what) });
  }
  if (provider !== null && provider.confirmed_at !== null) {
    steps.push({ at: provider.confirmed_at, text: words().stepConfirmed });
  }
  if (attestation !== null && attestation.by === "cashier") {
    steps.push({ at: attestation.attested_at, text: words().stepAttested(attestation.cashier_name) });
  }
  if (endedAt !== null) steps.push({ at: endedAt, text: statusText(intent) });
  return steps.sort((left, right) => left.at.localeCompare(right.at));
}

function Steps({ intent }: { readonly intent: Intent }) {
  return (
    <>
      <ol class="steps" aria-label={words().timeline}>
        {stepsOf(intent).map(({ at, text }) => (
          <li key={`${at} ${text}`}>
            <span class="numbers soft">{clockTime(at)}</span> {text}
          </li>
        ))}
      </ol>
      {intent.money_may_have_moved !== "" && <p class="steps">{unclearText(intent.money_may_have_moved)}</p>}
    </>
  );
}

/** Ended collections whose money is not accounted for: a person must check. */
function UnclearCollections() {
  const unclear = live.value?.unclear_collections ?? [];
  if (unclear.length === 0) return null;
  return (
    <details class="past">
      <summary class="past-group">
        <span class="past-what">{words().unclear}</span>
        <Tag tone="warn">{unclear.length}</Tag>
      </summary>
      <ul class="steps">
        {unclear.map(({ intent_id, reason }) => (
          <li key={intent_id}>
            {words().unclearItem(collectionName(intent_id))}: {unclearText(reason)}
          </li>
        ))}
      </ul>
    </details>
  );
}
