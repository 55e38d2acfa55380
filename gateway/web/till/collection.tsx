/** The active collection: what it waits for, the time left, the evidence, settle and cancel. Also the end of the last one. */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { call, type Result } from "../shared/call.ts";
import { Question } from "../shared/dialog.tsx";
import { errorText } from "../shared/error-texts.ts";
import type { Failure } from "../shared/failures.ts";
import { Field, focusFault } from "../shared/field.tsx";
import { clockTime, dateAndTime, money } from "../shared/format.ts";
import { useKey } from "../shared/key.ts";
import { FailureNotice, Notice, Tag, type Tone } from "../shared/states.tsx";
import { TEXT_BOUNDS } from "../shared/text-bounds.ts";
import { Countdown } from "../shared/time.tsx";
import { isConnected, isCurrent } from "./live.ts";
import { openOrder, order, startNewOrder } from "./order-store.ts";
import { closedText, type Intent, isOrderClosed, obstacleText, unclearText } from "./reasons.ts";
import { MayHaveMoved, moneyConfirmation, type ShownReason } from "./routes.tsx";
import { useHeading } from "./use-heading.ts";
import { words } from "./words.ts";

interface CollectionProps {
  readonly stationId: number;
  readonly intent: Intent;
  /** Why this cashier cannot act; null when they can. */
  readonly because: string | null;
}

export function Collection({ stationId, intent, because }: CollectionProps) {
  const heading = useHeading(intent.intent_id);
  return (
    <section class="card stack collection" aria-label={words().collection(intent.intent_display_number)}>
      <div class="row row-spread">
        <h2 ref={heading} tabIndex={-1}>
          {words()[intent.route]} <span class="soft">{words().collection(intent.intent_display_number)}</span>
        </h2>
        <span>
          <span class="soft small">{words().left} </span>
          <Countdown until={intent.expires_at} since={intent.created_at} label={words().left} />
        </span>
      </div>
      <p class="amount numbers">{money(intent.amount, intent.currency)}</p>
      <p class="waits" role="status">
        {waitText(intent)}
      </p>
      {isOther(intent) && <MayHaveMoved reason={intent.money_may_have_moved} />}
      <Evidence intent={intent} />
      <Decision key={intent.intent_id} stationId={stationId} intent={intent} because={because} />
    </section>
  );
}

/** The provider reports other money than this collection's: it does not confirm, and the QR code is shown no longer. */
const isOther = ({ money_may_have_moved: reason }: Intent): boolean => reason === "money_differs";

/**
 * An earlier collection may have charged the guest, so the service shows no QR, and no device gets the collection. It stays
 * so until the cashier begins it again with the confirmation.
 */
const isHeldBack = ({ route, status, confirmation_needed: needed }: Intent): boolean =>
  needed !== null && status === "created" && (route === "dynamic_qr" || route === "smart_pos");

function waitText(intent: Intent): string {
  const { route, status } = intent;
  if (route === "cash") return words().createdCash;
  if (route === "attested_terminal") return words().createdTerminal;
  if (status === "processing") return words().processing;
  if (isOther(intent)) return words().otherMoney;
  if (isHeldBack(intent)) return words().heldBack;
  if (route === "dynamic_qr") {
    if (status === "created") return words().createdQr;
    return intent.provider?.qr_payload === "" ? words().hiddenQr : words().presentedQr;
  }
  return status === "created" ? words().created : words().presented;
}

type Outcome = Intent["reports"][number]["outcome"];
const OUTCOME_TONES: Readonly<Record<Outcome, Tone>> = {
  reported_success: "good",
  reported_declined: "bad",
  reported_cancelled: "warn",
  reported_unknown: "warn",
};

/** The device's reports, the newest first. They are evidence, not proof; the cashier decides. */
function Evidence({ intent }: { readonly intent: Intent }) {
  if (intent.route !== "smart_pos" && intent.reports.length === 0) return null;
  return (
    <div class="stack-tight">
      <h3>{words().evidence}</h3>
      {intent.reports.length === 0 && <p class="soft">{words().noEvidence}</p>}
      <ul class="evidence">
        {[...intent.reports].reverse().map((report, index) => (
          <li key={`${report.reported_at} ${index}`} class="row">
            <Tag tone={OUTCOME_TONES[report.outcome]}>{words()[report.outcome]}</Tag>
            <code class="reference">{report.provider_reference}</code>
            <span class="soft small">{clockTime(report.reported_at)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** What the cashier confirms: that the reference was used before, or why money may have moved. */
interface Confirmed {
  readonly usedReference?: true;
  readonly money?: ShownReason | undefined;
}

/** A question that the service asks before it settles, and the reference that was in force when the cashier settled. */
interface Asked {
  readonly failure: Failure;
  readonly reference: string;
  /** The cashier has confirmed an earlier question about money. */
  readonly isAgain: boolean;
}

function Decision({ stationId, intent, because }: CollectionProps) {
  const reference = useSignal("");
  const isTried = useSignal(false);
  const failure = useSignal<Failure | null>(null);
  const asked = useSignal<Asked | null>(null);
  /** The reference that the cashier has confirmed although it was used before. The service asks again for another one. */
  const confirmed = useSignal<string | null>(null);
  const isAskingToCancel = useSignal(false);
  const path = { station_id: stationId, intent_id: intent.intent_id };
  const inForce = referenceInForce(intent, reference.value.trim());
  const settling = useKey(`attest ${intent.intent_id} ${inForce}`);
  const cancelling = useKey(`cancel ${intent.intent_id}`);
  const needsReference = intent.route === "attested_terminal";
  const isMissing = needsReference && reference.value.trim() === "";
  const needed = intent.confirmation_needed;
  /** As it was when the page first showed this text: what came since has not been seen, so the service has to ask about it. */
  const seen = useMemo(() => needed ?? {}, [needed?.reason, needed?.earlier_intent_id]);

  /** A confirmation that money may have moved counts for this request only: another payment may be reported after it. */
  const settle = async ({ usedReference, money: shown }: Confirmed): Promise<void> => {
    isTried.value = true;
    if (isMissing) return;
    if (usedReference === true) confirmed.value = inForce;
    const isConfirmed = confirmed.value === inForce;
    const typed = reference.value.trim();
    const body = {
      // A device may send another report before this request arrives: the confirmation does not count for its reference.
      ...(isConfirmed ? { confirms_reference_already_used: true, confirmed_report_count: intent.report_count } : {}),
      ...(shown === undefined ? {} : moneyConfirmation(shown)),
      ...(typed === "" ? {} : { reference: typed }),
    };
    const key = `${settling.key}${isConfirmed ? "-used" : ""}${shown === undefined ? "" : "-money"}`;
    const result = await call("POST /api/cashier/v1/stations/{station_id}/intents/{intent_id}/attest/", {
      path,
      body,
      key,
    });
    settling.after(result);
    note(result, shown !== undefined);
    // The question is about the reference that was sent. For another one, typed meanwhile, the service asks by itself.
    if (typed !== reference.peek().trim()) asked.value = null;
  };
  const note = (result: Result<unknown>, isAgain = false): void => {
    const isQuestion =
      !result.ok && (result.code === "reference_already_used" || result.code === "money_may_have_moved");
    asked.value = isQuestion ? { failure: result, reference: inForce, isAgain } : null;
    failure.value = result.ok || isQuestion ? null : result;
    if (!result.ok && isOrderClosed(result.code)) void openOrder(intent.order_id);
  };
  const cancel = async (): Promise<void> => {
    const { key } = cancelling;
    const result = await call("POST /api/cashier/v1/stations/{station_id}/intents/{intent_id}/cancel/", { path, key });
    cancelling.after(result);
    note(result);
    isAskingToCancel.value = false;
  };
  const asksFirst = intent.settle_obstacle === "money_may_have_moved";
  const settleBecause = because ?? settleObstacle(intent);
  // A reason that applies to both buttons is shown only at the other button.
  const cancelBecause = because === null && intent.cancel_offered ? null : "";
  const amount = money(intent.amount, intent.currency);
  return (
    <div class="stack">
      {needed !== null && <MayHaveMoved {...needed} />}
      {failure.value !== null && <FailureNotice failure={failure.value} />}
      {/* Enter clicks the settle button, which does nothing while it is disabled. */}
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          focusFault(event.currentTarget);
        }}
      >
        {needsReference && (
          <Field
            label={words().reference}
            help={words().referenceHelp}
            value={reference.value}
            maxLength={TEXT_BOUNDS.reference}
            onInput={(value) => (reference.value = value)}
            fault={isTried.value && isMissing ? words().referenceFault : null}
          />
        )}
        <div class="decision">
          <Button kind="danger" onClick={() => (isAskingToCancel.value = true)} disabledBecause={cancelBecause}>
            {words().cancelShort}
          </Button>
          <Button
            kind="main"
            submit
            class="button-settle"
            onClick={() => settle(asksFirst ? { money: seen } : {})}
            disabledBecause={settleBecause}
          >
            {asksFirst
              ? words().settleAnyway
              : intent.route === "cash"
                ? words().settleCash(amount)
                : words().settle(amount)}
          </Button>
        </div>
      </form>
      {isAskingToCancel.value && (
        <Question
          title={words().cancelTitle}
          action={words().cancel}
          back={words().cancelBack}
          isDangerous
          onClose={() => (isAskingToCancel.value = false)}
          onConfirm={cancel}
          disabledBecause={because ?? cancelBecause}
        >
          {intent.money_may_have_moved !== "" && <MayHaveMoved reason={intent.money_may_have_moved} />}
          <p>{words().cancelText}</p>
        </Question>
      )}
      {asked.value !== null && !isOutdated(asked.value, needed, inForce) && (
        <SettleQuestion
          failure={asked.value.failure}
          isAgain={asked.value.isAgain}
          onClose={() => (asked.value = null)}
          settle={settle}
          disabledBecause={because}
        />
      )}
    </div>
  );
}

function settleObstacle(intent: Intent): string | null {
  if (intent.settle_offered || intent.settle_obstacle === "money_may_have_moved") return null;
  if (intent.settle_obstacle !== "") return obstacleText(intent.settle_obstacle);
  if (intent.attestation !== null) return errorText({ code: "settlement_in_progress" }).sentence;
  if (isOther(intent)) return unclearText(intent.money_may_have_moved);
  if (isHeldBack(intent)) return words().heldBack;
  return intent.route === "dynamic_qr" ? words().settleWaitsQr : words().settleWaits;
}

/** The reference with which the service settles: the newest that a device has reported, else the typed one. */
function referenceInForce({ reports }: Intent, typed: string): string {
  const reported = reports.map((report) => report.provider_reference).filter((one) => one !== "");
  return reported[reported.length - 1] ?? typed;
}

/** Whether another reference is in force than in the question, or the live view names another reason: neither was checked. */
function isOutdated({ failure, reference }: Asked, needed: Intent["confirmation_needed"], inForce: string): boolean {
  if (failure.code === "reference_already_used") return reference !== inForce;
  if (needed === null) return false;
  return needed.reason_number !== failure.reason_number;
}

interface SettleQuestionProps {
  readonly failure: Failure;
  readonly isAgain: boolean;
  readonly onClose: () => void;
  readonly settle: (confirmed: Confirmed) => Promise<void>;
  readonly disabledBecause: string | null;
}

function SettleQuestion({ failure, isAgain, settle, ...question }: SettleQuestionProps) {
  if (failure.code === "money_may_have_moved") {
    return (
      <Question
        title={words().mayHaveMoved}
        action={words().settleAnyway}
        isDangerous
        {...question}
        onConfirm={() => settle({ money: failure })}
      >
        <MayHaveMoved {...failure} isAgain={isAgain} />
      </Question>
    );
  }
  const earlier = failure.earlier_order;
  return (
    <Question
      title={words().usedTitle}
      action={words().usedAnyway}
      isDangerous
      {...question}
      onConfirm={() => settle({ usedReference: true })}
    >
      {earlier !== undefined && (
        <p>
          {words().usedText(
            earlier.order_display_number,
            earlier.station_name,
            money(earlier.amount, earlier.currency),
            dateAndTime(earlier.settled_at),
          )}
        </p>
      )}
    </Question>
  );
}

export const STATUS_TONES: Readonly<Record<Intent["status"], Tone>> = {
  created: "accent",
  presented: "accent",
  processing: "accent",
  succeeded: "good",
  cancelled: "plain",
  expired: "warn",
};

/** How the last collection ended; shown until the cashier continues. */
export function Ended({ intent, onDone }: { readonly intent: Intent; readonly onDone: () => void }) {
  const heading = useHeading(intent.intent_id);
  const isPaid = intent.status === "succeeded";
  const closed = order.value?.order_id === intent.order_id ? closedText(order.value) : null;
  const title = words()[intent.status as "succeeded" | "cancelled" | "expired"];
  return (
    <section class={`card stack ended ${isPaid ? "ended-good" : ""}`} role="status">
      <h2 ref={heading} tabIndex={-1}>
        {title} <span class="soft">{words().order(intent.order_display_number)}</span>
      </h2>
      <p>{isPaid ? words().succeededText(money(intent.amount, intent.currency)) : (closed ?? words().endedUnpaid)}</p>
      {intent.money_may_have_moved !== "" && <MayHaveMoved reason={intent.money_may_have_moved} />}
      <Button
        local
        kind="main"
        onClick={() => {
          if (!isPaid) void openOrder(intent.order_id);
          // If the cashier has opened another order meanwhile, that order stays.
          else if (order.peek()?.order_id === intent.order_id) startNewOrder();
          onDone();
        }}
      >
        {isPaid ? words().done : words().again}
      </Button>
    </section>
  );
}

/** A notice that the state is not current, so that the cashier cannot decide anything. */
export function NotCurrent() {
  if (isCurrent.value) return null;
  return <Notice tone="warn" title={isConnected.value ? words().stale : words().reconnecting} isUrgent />;
}
