/** Today's collections at this station: the newest ones, and earlier ones page by page, each with its steps. */
import { computed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { call } from "../shared/call.ts";
import { now } from "../shared/clock.ts";
import { Field } from "../shared/field.tsx";
import { Empty, FailureNotice, Skeleton, Tag } from "../shared/states.tsx";
import { TEXT_BOUNDS } from "../shared/text-bounds.ts";
import { useTyped } from "../shared/typing.ts";
import { useLoad } from "../shared/use-load.ts";
import { collectionName, live } from "./live.ts";
import { Past, type Payment } from "./past.tsx";
import { type Intent, unclearText } from "./reasons.ts";
import { words } from "./words.ts";

/** Rows of one page. A ten-year-old till can render this many quickly. */
const LIMIT = 50;

const startOfDay = (atMs: number): number => new Date(atMs).setHours(0, 0, 0, 0);
/** The start of today. It changes at midnight while the till stays open. */
const today = computed(() => startOfDay(now.value));

export function History({ stationId }: { readonly stationId: number }) {
  return (
    <section class="card stack history" aria-label={words().today}>
      <h2>{words().today}</h2>
      <UnclearCollections />
      <Today key={`${stationId} ${today.value}`} stationId={stationId} from={today.value} />
    </section>
  );
}

interface Row {
  readonly payment: Payment;
  /** Defined while the station still has the collection in its state. */
  readonly intent: Intent | undefined;
}

/**
 * The station returns its newest collections, with their steps. The list of payments contains all, but is slightly late. When
 * the list fails, the page still shows the newest collections.
 */
function Today({ stationId, from }: { readonly stationId: number; readonly from: number }) {
  const search = useSignal("");
  const searched = useSignal("");
  const wanted = searched.value.trim();
  /** For each page that the reader has turned, the id of its last payment. The next page begins after it. */
  const turned = useSignal<readonly number[]>([]);
  const before = turned.value[turned.value.length - 1];
  useTyped(search.value, searched.value, () => {
    searched.value = search.peek();
    turned.value = [];
  });
  const isFirst = before === undefined;
  const path = { station_id: stationId };
  // The page reads its first page again when a collection begins, changes or ends. Older pages are not read again.
  const { active_intent: active, last_ended_intent: ended } = live.value ?? {};
  const version = `${active?.intent_id} ${active?.status} ${active?.report_count} ${ended?.intent_id}`;
  const newest = useLoad("newest", () => call("GET /api/cashier/v1/stations/{station_id}/intents/", { path }), {
    again: version,
  });
  const page = useLoad(
    `${before} ${wanted}`,
    () =>
      call("GET /api/cashier/v1/stations/{station_id}/payments/", {
        path,
        query: {
          from: new Date(from).toISOString(),
          before_id: before,
          search: wanted === "" ? undefined : wanted,
          limit: LIMIT,
        },
      }),
    { again: isFirst ? version : "", keepsOld: true },
  );
  const intents = (newest.data?.intents ?? []).filter(({ created_at }) => Date.parse(created_at) >= from);
  const payments = page.data?.payments ?? [];
  const listed = payments.map(rowWith(intents));
  const isOldSearch = page.isOld && wanted !== "";
  const rows = isFirst && !isOldSearch ? newestRows(matching(intents, wanted), page.isOld ? [] : listed) : listed;
  const hasEarlier = page.data?.has_more === true;
  // The search field stays when its result is short.
  const isLong = useRef(false);
  isLong.current ||= hasEarlier;
  const list = useTurning(before, page.isOld);
  const turn = (pages: readonly number[]) => () => {
    turned.value = pages;
  };
  const isRead = page.data !== null && !page.isOld && (!isFirst || newest.data !== null);
  const hasFailed = page.failure !== null || (isFirst && newest.failure !== null);
  return (
    <>
      {isLong.current && (
        <Field
          label={words().todaySearch}
          type="search"
          value={search.value}
          maxLength={TEXT_BOUNDS.search}
          onInput={(value) => {
            search.value = value;
          }}
        />
      )}
      {newest.failure !== null && <FailureNotice failure={newest.failure} onRetry={newest.reload} />}
      {rows.length === 0 && !isRead && !hasFailed && <Skeleton blocks={1} />}
      {rows.length === 0 && isRead && wanted === "" && (
        <Empty title={words().todayEmpty}>
          <p>{words().todayHelp}</p>
        </Empty>
      )}
      {rows.length === 0 && isRead && wanted !== "" && <p class="soft">{words().todayNoneFound}</p>}
      {rows.length > 0 && (
        <ul ref={list} class="past-list" tabIndex={-1} aria-label={words().today} aria-busy={page.isOld}>
          {rows.map(({ payment, intent }) => (
            <Past key={payment.intent_id} stationId={stationId} payment={payment} intent={intent} />
          ))}
        </ul>
      )}
      {page.failure !== null && <FailureNotice failure={page.failure} onRetry={page.reload} />}
      {(hasEarlier || turned.value.length > 0) && (
        <div class="row">
          {turned.value.length > 0 && <Button onClick={turn([])}>{words().todayNewest}</Button>}
          {turned.value.length > 1 && (
            <Button onClick={turn(turned.value.slice(0, -1))} busy={page.isOld}>
              {words().todayLater}
            </Button>
          )}
          {hasEarlier && (
            <Button onClick={turn([...turned.value, payments[payments.length - 1]?.intent_id ?? 0])} busy={page.isOld}>
              {words().todayEarlier}
            </Button>
          )}
        </div>
      )}
    </>
  );
}

/** Merges both lists: the list of payments may lack the newest collections of the station. */
function newestRows(intents: readonly Intent[], listed: readonly Row[]): readonly Row[] {
  const isKnown = new Set(intents.map(({ intent_id }) => intent_id));
  const others = listed.filter(({ payment }) => !isKnown.has(payment.intent_id));
  const rows = [...intents.map((intent) => ({ payment: intent, intent })), ...others];
  return rows.sort((left, right) => Date.parse(right.payment.created_at) - Date.parse(left.payment.created_at));
}

/** The station's collections are newer than the list of payments, so they replace its entries. */
const rowWith =
  (intents: readonly Intent[]) =>
  (payment: Payment): Row => {
    const intent = intents.find(({ intent_id }) => intent_id === payment.intent_id);
    return { payment: intent ?? payment, intent };
  };

/** The collections that a search finds, by the rule of the service: the order's number, or the start of the reference. */
function matching(intents: readonly Intent[], search: string): readonly Intent[] {
  const start = search.toLowerCase();
  const number = /^\d+$/.test(search) ? Number(search) : null;
  return intents.filter(
    (intent) => intent.order_display_number === number || referenceOf(intent).toLowerCase().startsWith(start),
  );
}

function referenceOf({ attestation, provider, reports }: Intent): string {
  const reported = reports.map((report) => report.provider_reference).reverse();
  return [attestation?.reference, provider?.provider_reference, ...reported].find(Boolean) ?? "";
}

/** Moves the focus to the start of the list when another page has loaded. */
function useTurning(before: number | undefined, isOld: boolean) {
  const list = useRef<HTMLUListElement>(null);
  const shown = useRef(before);
  useEffect(() => {
    if (isOld || shown.current === before) return;
    shown.current = before;
    list.current?.focus({ preventScroll: true });
    list.current?.scrollIntoView({ block: "start" });
  }, [before, isOld]);
  return list;
}

/** Ended collections for which money may have moved: a person must check them. */
function UnclearCollections() {
  const unclear = live.value?.unclear_collections ?? [];
  if (unclear.length === 0) return null;
  return (
    <details class="past">
      <summary class="past-group">
        <span class="past-what">{words().unclear}</span>
        <Tag tone="warn">{unclear.length}</Tag>
      </summary>
      <p class="steps soft">{words().unclearHelp}</p>
      <ul class="steps">
        {unclear.map(({ intent_id, order_display_number: order, reason }) => (
          <li key={intent_id}>
            {typeof order === "number" && `${words().order(order)}, `}
            {words().unclearItem(collectionName(intent_id))}: {unclearText(reason)}
          </li>
        ))}
      </ul>
    </details>
  );
}
