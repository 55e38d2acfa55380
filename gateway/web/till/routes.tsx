/** One button for each way to pay. A withdrawn way shows the reason. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Button } from "../shared/button.tsx";
import { call } from "../shared/call.ts";
import { Question } from "../shared/dialog.tsx";
import type { Failure } from "../shared/failures.ts";
import { useKey } from "../shared/key.ts";
import { FailureNotice, Notice, Tag } from "../shared/states.tsx";
import { collectionName, isCurrent, live } from "./live.ts";
import { isSaving, openOrder, order, startNewOrder } from "./order-store.ts";
import { closedText, isOrderClosed, type LiveState, unclearText, withdrawalText } from "./reasons.ts";
import { useHeading } from "./use-heading.ts";
import { words } from "./words.ts";

type Offer = LiveState["routes"][number];
type Companion = LiveState["companions"][number];
interface Choice {
  readonly route: Offer["route"];
  readonly deviceId?: number | undefined;
}
/** The question whether to collect again. */
interface Asked {
  readonly choice: Choice;
  readonly failure: Failure;
  /** The reasons that the live view had when the request was sent. */
  readonly reasons: string;
  /** The cashier has confirmed an earlier question. */
  readonly isAgain: boolean;
}

export function Routes({ stationId, because }: { readonly stationId: number; readonly because: string | null }) {
  const failure = useSignal<Failure | null>(null);
  const asked = useSignal<Asked | null>(null);
  const known = order.value;
  const closed = closedText(known);
  const reasons = reasonsOf(known?.order_id);
  /** The question ends when a reason comes or changes: the cashier has not asked the guest about that one. */
  const question = closed === null && asked.value?.reasons === reasons ? asked.value : null;
  const last = live.value?.last_ended_intent?.intent_id ?? 0;
  // After a collection has ended, another attempt for the same order is a new request with a new key.
  const { key, after } = useKey(`${known?.order_id} ${known?.revision} ${last}`);

  const begin = async (choice: Choice, confirms?: ShownReason): Promise<void> => {
    if (known === null) return;
    const body = {
      order_id: known.order_id,
      route: choice.route,
      ...(choice.deviceId === undefined ? {} : { device_id: choice.deviceId }),
      ...(confirms === undefined ? {} : moneyConfirmation(confirms)),
    };
    const path = { station_id: stationId };
    const shownReasons = reasonsOf(known.order_id);
    // The way to pay is part of the key: another way is a new request.
    const routeKey = `${key}-${choice.route}-${choice.deviceId ?? ""}${confirms === undefined ? "" : "-confirmed"}`;
    const result = await call("POST /api/cashier/v1/stations/{station_id}/intents/", { path, body, key: routeKey });
    after(result);
    if (!result.ok && isOrderClosed(result.code)) await openOrder(known.order_id);
    const isQuestion = !result.ok && result.code === "money_may_have_moved";
    asked.value = isQuestion
      ? { choice, failure: result, reasons: shownReasons, isAgain: confirms !== undefined }
      : null;
    failure.value = result.ok ? null : result;
  };

  const nothing = known === null || !/[1-9]/.test(known.total);
  const stillSaving = isSaving.value ? words().stillSaving : null;
  const common = closed ?? because ?? (nothing ? words().nothingToCollect : stillSaving);
  const heading = useHeading("");
  const state = live.value;
  if (state === null) return null;
  return (
    <section class="card stack" aria-label={words().collect}>
      <h2 ref={heading} tabIndex={-1}>
        {words().collect}
      </h2>
      <p class="soft">{common ?? words().collectHelp}</p>
      {closed !== null && (
        <Button local kind="main" onClick={startNewOrder} disabledBecause={stillSaving}>
          {words().done}
        </Button>
      )}
      {failure.value !== null && question === null && closed === null && <FailureNotice failure={failure.value} />}
      <ul class="routes">
        {state.routes.map((offer) => (
          <RouteRow
            key={offer.route}
            offer={offer}
            companions={offer.route === "smart_pos" ? state.companions : []}
            isDisabled={common !== null || !isCurrent.value}
            begin={(deviceId) => begin({ route: offer.route, deviceId })}
          />
        ))}
      </ul>
      {question !== null && (
        <Question
          title={words().mayHaveMoved}
          action={words().collectAnyway}
          isDangerous
          onClose={() => {
            asked.value = null;
            failure.value = null;
          }}
          onConfirm={() => begin(question.choice, question.failure)}
          disabledBecause={because}
        >
          <MayHaveMoved {...question.failure} isAgain={question.isAgain} />
        </Question>
      )}
    </section>
  );
}

/** Why the money of earlier collections of an order may have moved, as the live view has it now. */
function reasonsOf(orderId: number | undefined): string {
  const unclear = live.value?.unclear_collections ?? [];
  return unclear.flatMap((one) => (one.order_id === orderId ? [`${one.intent_id} ${one.reason}`] : [])).join();
}

/** A reason why money may have moved, as the service names it. */
export interface ShownReason {
  readonly reason?: string | undefined;
  readonly earlier_intent_id?: number | undefined;
  readonly reason_number?: number | undefined;
}

/** Confirms what the cashier has seen. Another payment may be reported before the request arrives: it does not count for that. */
export const moneyConfirmation = ({ reason_number }: ShownReason) => ({
  confirms_money_may_have_moved: true,
  confirmed_reason_number: reason_number,
});

/**
 * Warns that money may have moved: the reason, the earlier collection, and what the cashier does. The service sends no reason
 * when the station no longer has it.
 */
export function MayHaveMoved(shown: ShownReason & { readonly isAgain?: boolean }) {
  const { reason, earlier_intent_id: earlier, isAgain = false } = shown;
  return (
    <Notice tone="warn" title={reason === undefined ? words().mayHaveMovedForgotten : unclearText(reason)}>
      {isAgain && <p>{words().reportedSince}</p>}
      {earlier !== undefined && <p>{words().earlierCollection(collectionName(earlier))}</p>}
      <p>{words().mayHaveMovedText}</p>
    </Notice>
  );
}

interface RouteRowProps {
  readonly offer: Offer;
  readonly companions: readonly Companion[];
  readonly isDisabled: boolean;
  readonly begin: (deviceId?: number) => Promise<void>;
}

function RouteRow({ offer, companions, isDisabled, begin }: RouteRowProps) {
  const name = words()[offer.route];
  const usable = companions.filter(({ offered }) => offered);
  /** The button shows the same sentence already. */
  const isSaid = ({ reason }: Companion): boolean =>
    companions.length === 1 && reason !== null && reason === offer.reason;
  return (
    <li class="route">
      {usable.length > 1 ? (
        usable.map((companion) => (
          <RouteButton
            key={companion.device_id}
            isDisabled={isDisabled}
            reason={null}
            onClick={() => begin(companion.device_id)}
          >
            {name} · {companion.name}
          </RouteButton>
        ))
      ) : (
        <RouteButton isDisabled={isDisabled} reason={offer.reason} onClick={() => begin()}>
          {name}
        </RouteButton>
      )}
      {companions.length > 0 && (
        <ul class="companions small">
          {companions.map((companion) => (
            <li key={companion.device_id}>
              {companion.name} {!isSaid(companion) && <Readiness companion={companion} />}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

interface RouteButtonProps {
  readonly children: ComponentChildren;
  readonly isDisabled: boolean;
  readonly reason: string | null;
  readonly onClick: () => Promise<void>;
}

/** A reason that applies to all ways is shown once above them. This button shows only its own reason. */
function RouteButton({ children, isDisabled, reason, onClick }: RouteButtonProps) {
  const because = reason === null ? (isDisabled ? "" : null) : withdrawalText(reason);
  return (
    <Button kind="main" class="button-wide button-route" onClick={onClick} disabledBecause={because}>
      {children}
    </Button>
  );
}

function Readiness({ companion }: { readonly companion: Companion }) {
  const { readiness, reason } = companion;
  if (reason !== null && reason !== "device_offline") return <Tag tone="bad">{withdrawalText(reason)}</Tag>;
  if (readiness === "ready") return <Tag tone="good">{words().companionReady}</Tag>;
  if (readiness === "not_polling") return <Tag tone="warn">{words().companionSilent}</Tag>;
  return <Tag tone="bad">{words().companionOffline}</Tag>;
}
