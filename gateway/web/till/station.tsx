/** One station: its lease, the order, the collection, and today's collections. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { call, isOffline } from "../shared/call.ts";
import { Question } from "../shared/dialog.tsx";
import { errorText } from "../shared/error-texts.ts";
import type { Failure } from "../shared/failures.ts";
import { useKey } from "../shared/key.ts";
import { Empty, FailureNotice, Notice, Skeleton } from "../shared/states.tsx";
import { sharedWords } from "../shared/words.ts";
import { Collection, Ended, NotCurrent } from "./collection.tsx";
import { Header } from "./header.tsx";
import { History } from "./history.tsx";
import { follow, isConnected, isCurrent, isGone, isInterrupted, live, mayDrive } from "./live.ts";
import { OrderPanel } from "./order.tsx";
import { isSaving, noteRevision, openOrder, order, orderFailure, startNewOrder } from "./order-store.ts";
import { type Intent, isOrderClosed, type LiveState, withdrawalText } from "./reasons.ts";
import { Routes } from "./routes.tsx";
import { chooseStation } from "./session.ts";
import { words } from "./words.ts";

/** No collection has this id. */
const NONE_ENDED = -1;
/** A lease lasts 15 minutes, or less. Renewed every 5 minutes, or at half of a shorter time, it survives a lost renewal. */
const RENEW_MS = 5 * 60_000;
/** The shortest pause between two renewals. The shortest lease that a till can request lasts half a minute. */
const MIN_RENEW_MS = 5_000;

export function StationView({ stationId }: { readonly stationId: number }) {
  /** The id of the last collection whose end the cashier has seen. */
  const seen = useSignal(0);
  const isTaken = useSignal(false);
  /** The id of the order that the live view named before. */
  const named = useRef<number | undefined>(undefined);
  useEffect(() => {
    isTaken.value = false;
    startNewOrder();
    return follow(stationId);
  }, [stationId]);
  const state = live.value;
  useEffect(() => {
    if (state === null) return;
    takeState(state, { isFirst: !isTaken.peek(), namedId: named.current });
    // Also once the page has stored its lines: until then it shows no other order.
    if (isSaving.peek()) return;
    isTaken.value = true;
    named.current = state.order?.order_id;
  }, [state, isSaving.value]);
  const shown = state?.order ?? null;
  useEffect(() => {
    // Also once the page has stored its lines: another tab may have changed the order before the answer arrived.
    if (shown !== null) noteRevision(shown.order_id, shown.revision);
  }, [shown, isSaving.value]);
  useEffect(() => {
    // A collection that ended before the page opened needs no message: it is in today's list.
    if (state !== null && seen.value === 0) seen.value = state.last_ended_intent?.intent_id ?? NONE_ENDED;
  }, [state === null]);
  const { mine: isMine = false, expires_at: leaseEnd = "" } = state?.lease ?? {};
  useEffect(() => {
    if (state !== null && isMine) return keepLease(stationId, Date.parse(leaseEnd) - Date.parse(state.server_time));
    return undefined;
  }, [stationId, isMine, leaseEnd]);

  const currency = order.value?.currency ?? currencyOf(state);
  if (isGone.value || state === null || currency === undefined) {
    return (
      <>
        <Header title={words().title} />
        <main class="till-main">
          <NoStation state={state} />
        </main>
      </>
    );
  }
  const because = whyNot();
  const ended = state.last_ended_intent;
  const isEndShown =
    state.active_intent === null && ended !== null && seen.value !== 0 && ended.intent_id !== seen.value;
  return (
    <>
      <Header title={state.name}>
        <LeaseActions stationId={stationId} state={state} />
      </Header>
      <main class="till-main">
        <div class="notices stack-tight">
          <NotCurrent />
          {state.blocked_reason !== "" && (
            <Notice tone="bad" title={words().blocked}>
              <p>{withdrawalText(state.blocked_reason)}</p>
            </Notice>
          )}
          <LostLease state={state} />
        </div>
        <div class="columns">
          <OrderPanel stationId={stationId} currency={currency} />
          <div class="stack">
            {state.active_intent !== null && (
              <Collection stationId={stationId} intent={state.active_intent} because={because} />
            )}
            {isEndShown && <Ended intent={ended} onDone={() => (seen.value = ended.intent_id)} />}
            {state.active_intent === null && !isEndShown && (
              // The key removes the failure of one order when the tab shows another order.
              <Routes key={order.value?.order_id ?? 0} stationId={stationId} because={because} />
            )}
            <History stationId={stationId} />
          </div>
        </div>
      </main>
    </>
  );
}

/** A gateway of the version before names the currency only in the order and in the collections. */
function currencyOf(state: LiveState | null): string | undefined {
  const named = [state?.order, state?.active_intent, state?.last_ended_intent, state as Partial<LiveState> | null];
  return named.find((one) => one?.currency !== undefined)?.currency;
}

const UNREADABLE: Failure = { ok: false, code: "answer_unreadable", detail: "", httpStatus: 0, retryAfterMs: null };

/** What the page shows before it has the station. */
function NoStation({ state }: { readonly state: LiveState | null }) {
  if (isGone.value) {
    return (
      <Empty title={errorText({ code: "station_unknown" }).sentence}>
        <Button local kind="main" onClick={() => chooseStation(null)}>
          {words().otherStation}
        </Button>
      </Empty>
    );
  }
  if (state !== null) return <FailureNotice failure={UNREADABLE} />;
  return isInterrupted.value ? <NotCurrent /> : <Skeleton />;
}

/** Why this cashier cannot decide anything now; null when they can. Each affected button shows the sentence. */
function whyNot(): string | null {
  if (isOffline.value) return sharedWords().offline;
  if (!isConnected.value) return words().reconnecting;
  if (!isCurrent.value) return words().stale;
  return mayDrive.value ? null : words().notYours;
}

interface Before {
  readonly isFirst: boolean;
  /** The order that the live view named before. */
  readonly namedId: number | undefined;
}

/** Shows the order of the station, unless the cashier works on another one. */
function takeState(state: LiveState, { isFirst, namedId }: Before): void {
  const { order: shown, active_intent: active, last_ended_intent: ended } = state;
  const known = order.peek();
  if (active !== null && known?.order_id !== active.order_id) void openOrder(active.order_id);
  else if (shown !== null && known === null && isFirst) void openOrder(shown.order_id);
  if (known === null || known.status !== "open") return;
  const isClosed = [active, ended].some((intent) => intent?.order_id === known.order_id && hasClosedOrder(intent));
  // The live view names an open order. When it names the page's order no longer, that order may be paid or voided.
  const isUnnamed = namedId === known.order_id && shown?.order_id !== namedId && !isSaving.peek();
  if (isClosed || isUnnamed) void openOrder(known.order_id);
}

/** Whether this collection shows that its order is paid or voided. */
const hasClosedOrder = ({ status, end_reason: end, settle_obstacle: obstacle }: Intent): boolean =>
  status === "succeeded" || isOrderClosed(end) || isOrderClosed(obstacle);

/** Renews a lease until the returned function is called: a renewed lease is another one. After a failure it tries again sooner. */
function keepLease(stationId: number, leftMs: number): () => void {
  let waitMs = Math.min(RENEW_MS, leftMs / 2);
  let timer: ReturnType<typeof setTimeout>;
  const wait = (): void => {
    timer = setTimeout(renew, Math.max(MIN_RENEW_MS, waitMs));
    waitMs /= 2;
  };
  const renew = (): void => {
    wait();
    if (!mayDrive.peek()) return;
    void call("PUT /api/cashier/v1/stations/{station_id}/lease/", { path: { station_id: stationId }, body: {} });
  };
  wait();
  return () => clearTimeout(timer);
}

interface StationProps {
  readonly stationId: number;
  readonly state: LiveState;
}

/** Buttons that take the station, take it over, or leave it. */
function LeaseActions({ stationId, state }: StationProps) {
  const { lease } = state;
  const failure = useSignal<Failure | null>(null);
  /** The lease that the question names. The question ends with it: the next cashier's lease is another one. */
  const asked = useSignal<typeof lease>(null);
  const isAsking = asked.value !== null && asked.value.acquired_at === lease?.acquired_at;
  const taking = useKey(`take ${stationId} ${lease?.cashier_id ?? 0} ${lease?.acquired_at ?? ""}`);
  const leaving = useKey(`leave ${stationId} ${lease?.acquired_at ?? ""}`);
  /** Each tap saves. A sentence that appears for such a short time would move the page. */
  const whySaving = orderFailure.value === null ? "" : words().stillSaving;
  const path = { station_id: stationId };
  const take = async (): Promise<void> => {
    const holder = isAsking ? asked.peek() : null;
    const body = holder === null ? {} : { take_over_from: holder.cashier_id };
    const result = await call("POST /api/cashier/v1/stations/{station_id}/lease/", { path, body, key: taking.key });
    taking.after(result);
    failure.value = result.ok ? null : result;
    asked.value = null;
  };
  const leave = async (): Promise<void> => {
    if (lease?.mine === true) {
      const result = await call("DELETE /api/cashier/v1/stations/{station_id}/lease/", { path, key: leaving.key });
      leaving.after(result);
      if (!result.ok) {
        failure.value = result;
        return;
      }
    }
    chooseStation(null);
  };
  return (
    <div class="row">
      {lease === null && (
        <Button kind="main" onClick={take}>
          {words().take}
        </Button>
      )}
      {lease !== null && !lease.mine && (
        <Button kind="main" onClick={() => (asked.value = lease)}>
          {words().takeOver}
        </Button>
      )}
      <Button
        kind="quiet"
        onClick={leave}
        // Leaving would lose lines that are not stored. When they are refused, the notice at the order offers to discard them.
        disabledBecause={isSaving.value ? whySaving : null}
      >
        {lease?.mine === true ? words().leave : words().otherStation}
      </Button>
      {failure.value !== null && <FailureNotice failure={failure.value} />}
      {isAsking && asked.value !== null && (
        <Question
          title={words().takeOverTitle}
          action={words().takeOver}
          onClose={() => (asked.value = null)}
          onConfirm={take}
        >
          <p>{words().takeOverText(asked.value.cashier_name)}</p>
        </Question>
      )}
    </div>
  );
}

/** Why this cashier does not drive the station. */
function LostLease({ state: { lease, lost_lease: lost } }: { readonly state: LiveState }) {
  if (lease?.mine === true) return null;
  if (lost?.mine === true) {
    const text = lost.reason === "taken_over" ? words().lost(lost.by_name) : words().broken(lost.by_name);
    return <Notice tone="warn" title={text} isUrgent />;
  }
  return <Notice title={lease === null ? words().stationFree : words().stationOf(lease.cashier_name)} />;
}
