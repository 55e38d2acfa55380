/** One collection of today: its order, its amount and its end. An open row also shows the steps. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "../shared/call.ts";
import type { Failure } from "../shared/failures.ts";
import { clockTime, money } from "../shared/format.ts";
import { FailureNotice, Tag } from "../shared/states.tsx";
import { STATUS_TONES } from "./collection.tsx";
import { type Intent, unclearText } from "./reasons.ts";
import { words } from "./words.ts";

/** The fields that a row shows. The list of payments and the station itself both return them. */
export type Payment = Pick<
  Intent,
  "intent_id" | "created_at" | "route" | "order_display_number" | "amount" | "currency" | "status"
>;

interface PastProps {
  readonly stationId: number;
  readonly payment: Payment;
  /** Undefined when the station no longer has the collection: the row then loads the steps when a person opens it. */
  readonly intent: Intent | undefined;
}

export function Past({ stationId, payment, intent }: PastProps) {
  const read = useSignal<Intent | undefined>(intent);
  const failure = useSignal<Failure | null>(null);
  // Keeps the collection, so that an open row stays when the station no longer returns it.
  useEffect(() => {
    if (intent !== undefined) read.value = intent;
  }, [intent]);
  const load = async (): Promise<void> => {
    const path = { station_id: stationId, intent_id: payment.intent_id };
    const found = await call("GET /api/cashier/v1/stations/{station_id}/intents/{intent_id}/", { path });
    failure.value = found.ok ? null : found;
    if (found.ok) read.value = found.reply;
  };
  const open = (isOpen: boolean): void => {
    if (isOpen && read.peek() === undefined) void load();
  };
  const known = intent ?? read.value;
  return (
    <li>
      <details class="past" onToggle={({ currentTarget }) => open(currentTarget.open)}>
        <summary>
          <span class="numbers soft">{clockTime(payment.created_at)}</span>
          <span class="past-what">
            {words()[payment.route]} · {words().order(payment.order_display_number)}
          </span>
          <strong class="numbers">{money(payment.amount, payment.currency)}</strong>
          <Tag tone={STATUS_TONES[payment.status]}>{statusText(payment)}</Tag>
        </summary>
        {failure.value !== null && <FailureNotice failure={failure.value} onRetry={load} />}
        {known !== undefined && <Steps intent={known} />}
      </details>
    </li>
  );
}

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
