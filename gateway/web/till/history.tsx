/** The collections of today at this station, each with its steps. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { call } from "../shared/call.ts";
import { now } from "../shared/clock.ts";
import type { Failure } from "../shared/failures.ts";
import { clockTime, money } from "../shared/format.ts";
import type { ReplyOf } from "../shared/operations.ts";
import { Empty, FailureNotice, Skeleton, Tag } from "../shared/states.tsx";
import { useLoad } from "../shared/use-load.ts";
import { STATUS_TONES } from "./collection.tsx";
import { collectionName, live } from "./live.ts";
import { type Intent, unclearText } from "./reasons.ts";
import { words } from "./words.ts";

type Earlier = ReplyOf<"GET /api/cashier/v1/stations/{station_id}/payments/">["payments"][number];

/** A page of those that the station itself no longer has. */
const LIMIT = 50;

/**
 * The station has its newest few at hand, with their steps. What it no longer has comes from the list of its payments, which
 * is a moment behind, and whose failure does not hide the newest.
 */
export function History({ stationId }: { readonly stationId: number }) {
  const state = live.value;
  const active = state?.active_intent;
  // Read again when a collection begins, goes on or ends.
  const version = `${active?.intent_id} ${active?.status} ${active?.report_count} ${state?.last_ended_intent?.intent_id}`;
  const { data, failure, reload } = useLoad(
    String(stationId),
    () => call("GET /api/cashier/v1/stations/{station_id}/intents/", { path: { station_id: stationId } }),
    { again: version },
  );
  const known = data?.intents ?? null;
  const shown = (known ?? []).filter(({ created_at }) => isToday(created_at));
  return (
    <section class="card stack history" aria-label={words().today}>
      <h2>{words().today}</h2>
      <UnclearCollections />
      {failure !== null && <FailureNotice failure={failure} onRetry={reload} />}
      {known === null && failure === null && <Skeleton blocks={1} />}
      {known !== null && shown.length === 0 && (
        <Empty title={words().todayEmpty}>
          <p>{words().todayHelp}</p>
        </Empty>
      )}
      <ul class="stack-tight">
        {shown.map((intent) => (
          <Past key={intent.intent_id} payment={intent}>
            <Steps intent={intent} />
          </Past>
        ))}
      </ul>
      {known !== null && known.length > 0 && shown.length === known.length && (
        <EarlierToday stationId={stationId} before={known[known.length - 1]?.intent_id ?? 0} />
      )}
    </section>
  );
}

interface PastProps {
  readonly payment: Pick<Intent, "created_at" | "route" | "order_display_number" | "amount" | "currency" | "status">;
  readonly onOpen?: () => void;
  readonly children: ComponentChildren;
}

function Past({ payment, onOpen, children }: PastProps) {
  return (
    <li>
      <details class="past" onToggle={({ currentTarget }) => (currentTarget.open ? onOpen?.() : undefined)}>
        <summary>
          <span class="numbers soft">{clockTime(payment.created_at)}</span>
          <span class="past-what">
            {words()[payment.route]} · {words().order(payment.order_display_number)}
          </span>
          <strong class="numbers">{money(payment.amount, payment.currency)}</strong>
          <Tag tone={STATUS_TONES[payment.status]}>{statusText(payment)}</Tag>
        </summary>
        {children}
      </details>
    </li>
  );
}

/** Today's collections before one that the station has. */
function EarlierToday({ stationId, before }: { readonly stationId: number; readonly before: number }) {
  const earlier = useSignal<readonly Earlier[]>([]);
  const hasMore = useSignal(false);
  const failure = useSignal<Failure | null>(null);
  const path = { station_id: stationId };
  const load = async (known: readonly Earlier[]): Promise<void> => {
    const before_id = known[known.length - 1]?.intent_id ?? before;
    const query = { before_id, from: new Date(new Date(now.peek()).setHours(0, 0, 0, 0)).toISOString(), limit: LIMIT };
    const found = await call("GET /api/cashier/v1/stations/{station_id}/payments/", { path, query });
    failure.value = found.ok ? null : found;
    if (!found.ok) return;
    earlier.value = [...known, ...found.reply.payments];
    hasMore.value = found.reply.has_more;
  };
  useEffect(() => void load([]), [stationId, before]);
  return (
    <>
      <ul class="stack-tight">
        {earlier.value.map((payment) => (
          <EarlierPayment key={payment.intent_id} stationId={stationId} payment={payment} />
        ))}
      </ul>
      {failure.value !== null && <FailureNotice failure={failure.value} onRetry={() => load(earlier.peek())} />}
      {hasMore.value && <Button onClick={() => load(earlier.peek())}>{words().todayMore}</Button>}
    </>
  );
}

function EarlierPayment({ stationId, payment }: { readonly stationId: number; readonly payment: Earlier }) {
  const intent = useSignal<Intent | null>(null);
  const failure = useSignal<Failure | null>(null);
  const load = async (): Promise<void> => {
    const path = { station_id: stationId, intent_id: payment.intent_id };
    const found = await call("GET /api/cashier/v1/stations/{station_id}/intents/{intent_id}/", { path });
    failure.value = found.ok ? null : found;
    if (found.ok) intent.value = found.reply;
  };
  return (
    <Past payment={payment} onOpen={() => (intent.peek() === null ? void load() : undefined)}>
      {failure.value !== null && <FailureNotice failure={failure.value} onRetry={load} />}
      {intent.value !== null && <Steps intent={intent.value} />}
    </Past>
  );
}

const isToday = (at: string): boolean => new Date(at).toDateString() === new Date(now.peek()).toDateString();

function statusText({ status }: Pick<Intent, "status">): string {
  if (status === "succeeded" || status === "cancelled" || status === "expired") return words()[status];
  return words().underWay;
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
