/** The order: its lines, the items of the catalogue, and a form for a typed line. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { priceOf } from "../shared/amounts.ts";
import { Button } from "../shared/button.tsx";
import { call, type Result } from "../shared/call.ts";
import { Question } from "../shared/dialog.tsx";
import type { Failure } from "../shared/failures.ts";
import { Field, focusFault } from "../shared/field.tsx";
import { fieldFault } from "../shared/field-error-texts.ts";
import { money, samplePrice } from "../shared/format.ts";
import { repeatedButton } from "../shared/repeated-taps.ts";
import { Empty, FailureNotice } from "../shared/states.tsx";
import { TEXT_BOUNDS } from "../shared/text-bounds.ts";
import { type Loading, useLoad } from "../shared/use-load.ts";
import { sharedWords } from "../shared/words.ts";
import { live } from "./live.ts";
import {
  addItem,
  addLine,
  changeQuantity,
  discard,
  type Item,
  isSaving,
  type Line,
  lineFault,
  lines,
  missingItems,
  openOrder,
  order,
  orderFailure,
  save,
  startNewOrder,
  voidOrder,
} from "./order-store.ts";
import { useHeading } from "./use-heading.ts";
import { words } from "./words.ts";

/** Items of one request: the most that the service allows. */
const ITEMS = 500;
/** Open orders of one request, and the most requests for them. */
const ORDERS = 100;
const MAX_PAGES = 10;

async function loadItems(stationId: number): Promise<Result<readonly Item[]>> {
  const found: Item[] = [];
  for (;;) {
    const query = { limit: ITEMS, since_id: found[found.length - 1]?.item_id };
    const path = { station_id: stationId };
    const result = await call("GET /api/cashier/v1/stations/{station_id}/catalogue-items/", { path, query });
    if (!result.ok) return result;
    found.push(...result.reply.items);
    if (!result.reply.has_more) return { ok: true, reply: found };
  }
}

export function OrderPanel({ stationId, currency }: { readonly stationId: number; readonly currency: string }) {
  const isCollecting = (live.value?.active_intent ?? null) !== null;
  const isOpen = order.value === null || order.value.status === "open";
  const items = useLoad(String(stationId), () => loadItems(stationId), { again: missingItems.value });
  const fault = fieldFault(orderFailure.value, "/lines");
  const heading = useHeading(`${order.value?.order_id} ${lines.value.length}`);
  return (
    <section class="card stack order" aria-label={words().newOrder}>
      <div class="row row-spread">
        <h2 ref={heading} tabIndex={-1}>
          {order.value === null ? words().newOrder : words().order(order.value.order_display_number)}
        </h2>
        <OrderMenu stationId={stationId} isCollecting={isCollecting} />
      </div>
      {orderFailure.value !== null && (
        <FailureNotice failure={orderFailure.value} onRetry={isSaving.value ? save : undefined} />
      )}
      {orderFailure.value !== null && isSaving.value && (
        <Button kind="quiet" onClick={discard}>
          {sharedWords().cancel}
        </Button>
      )}
      <Lines currency={currency} isFixed={isCollecting || !isOpen} />
      {fault !== null && (
        <p class="field-fault" role="alert">
          {fault}
        </p>
      )}
      <p class="total numbers">
        <span>{words().total}</span>
        <strong aria-live="polite">
          {isSaving.value ? words().saving : money(order.value?.total ?? zeroOf(currency), currency)}
        </strong>
      </p>
      {!isCollecting && isOpen && (
        <>
          <Catalogue items={items} currency={currency} />
          <FreeLine currency={currency} />
        </>
      )}
    </section>
  );
}

const zeroOf = (currency: string): string => priceOf("0", currency) ?? "0";

function Lines({ currency, isFixed }: { readonly currency: string; readonly isFixed: boolean }) {
  if (lines.value.length === 0) {
    return (
      <Empty title={words().emptyOrder}>
        <p>{words().emptyOrderHelp}</p>
      </Empty>
    );
  }
  return (
    <ul class="lines">
      {lines.value.map((line, index) => (
        <li key={`${line.name} ${line.unitAmount}`} class="line">
          <span class="line-name">{line.name}</span>
          <span class="line-price numbers soft">{money(line.unitAmount, currency)}</span>
          <Quantity line={line} index={index} isFixed={isFixed} />
          <LineFault line={line} />
        </li>
      ))}
    </ul>
  );
}

function LineFault({ line }: { readonly line: Line }) {
  const fault = lineFault(line);
  if (fault === null) return null;
  return (
    <span class="line-fault field-fault" role="alert">
      {fault}
    </span>
  );
}

function Quantity({
  line,
  index,
  isFixed,
}: {
  readonly line: Line;
  readonly index: number;
  readonly isFixed: boolean;
}) {
  if (isFixed) return <span class="line-quantity numbers">× {line.quantity}</span>;
  return (
    <span class="line-quantity">
      <Button local label={words().less(line.name)} onClick={() => changeQuantity(index, -1)} class="button-square">
        −
      </Button>
      <span class="numbers quantity">{line.quantity}</span>
      <Button local label={words().more(line.name)} onClick={() => changeQuantity(index, 1)} class="button-square">
        +
      </Button>
    </span>
  );
}

/** Above this many items a search is faster than scrolling. */
const SEARCHED_FROM = 12;

interface CatalogueProps {
  readonly items: Loading<readonly Item[]>;
  readonly currency: string;
}

function Catalogue({ items: { data, failure, reload }, currency }: CatalogueProps) {
  const search = useSignal("");
  const all = data ?? [];
  if (data?.length === 0) return <p class="soft small">{words().noCatalogue}</p>;
  const wanted = search.value.trim().toLowerCase();
  const shown = all.filter(({ name, category }) => `${name} ${category}`.toLowerCase().includes(wanted));
  /** A new line moves the items. Two taps at one place still mean the same item. */
  const add = (item: Item, event: MouseEvent): void => {
    const meant = repeatedButton(event);
    if (meant === null) return addItem(item);
    const again = all.find(({ item_id }) => meant.getAttribute("data-item") === String(item_id));
    if (again !== undefined) addItem(again);
  };
  return (
    <section class="stack-tight" aria-label={words().catalogue}>
      {failure !== null && <FailureNotice failure={failure} onRetry={reload} />}
      {all.length >= SEARCHED_FROM && (
        <Field
          label={words().findItem}
          type="search"
          value={search.value}
          onInput={(value) => (search.value = value)}
        />
      )}
      {all.length > 0 && shown.length === 0 && <p class="soft small">{words().noItemFound}</p>}
      <ul class="items">
        {shown.map((item) => (
          <li key={item.item_id}>
            <button type="button" class="item" data-item={item.item_id} onClick={(event) => add(item, event)}>
              <span>{item.name}</span>
              <span class="numbers soft">{money(item.unit_amount, currency)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function FreeLine({ currency }: { readonly currency: string }) {
  const name = useSignal("");
  const price = useSignal("");
  const isTried = useSignal(false);
  const amount = priceOf(price.value, currency);
  const submit = (event: Event): void => {
    event.preventDefault();
    isTried.value = true;
    if (amount === undefined || name.value.trim() === "") return focusFault(event.currentTarget);
    addLine({ name: name.value.trim(), unitAmount: amount, quantity: 1 });
    name.value = "";
    price.value = "";
    isTried.value = false;
  };
  return (
    <form class="free-line" onSubmit={submit} aria-label={words().freeLine}>
      <Field
        label={words().lineName}
        value={name.value}
        maxLength={TEXT_BOUNDS.name}
        onInput={(value) => (name.value = value)}
        fault={isTried.value && name.value.trim() === "" ? words().nameFault : null}
      />
      <Field
        label={words().linePrice}
        value={price.value}
        inputMode="decimal"
        onInput={(value) => (price.value = value)}
        fault={isTried.value && amount === undefined ? words().priceFault(samplePrice(currency)) : null}
      />
      <Button local submit>
        {words().add}
      </Button>
    </form>
  );
}

function OrderMenu({ stationId, isCollecting }: { readonly stationId: number; readonly isCollecting: boolean }) {
  /** The order that the question is about: meanwhile this tab may show another order. */
  const asked = useSignal<number | null>(null);
  const failure = useSignal<Failure | null>(null);
  const known = order.value;
  return (
    <div class="row">
      {!isCollecting && <OpenOrders stationId={stationId} />}
      {known !== null && known.status === "open" && !isCollecting && (
        <Button kind="quiet" onClick={() => (asked.value = known.order_id)}>
          {words().voidOrder}
        </Button>
      )}
      {asked.value !== null && (
        <Question
          title={words().voidTitle}
          action={words().voidOrder}
          isDangerous
          onClose={() => (asked.value = null)}
          onConfirm={async () => {
            failure.value = asked.value === null ? null : await voidOrder(asked.value);
            if (failure.value === null) asked.value = null;
          }}
        >
          <p>{words().voidText}</p>
          {failure.value !== null && <FailureNotice failure={failure.value} />}
        </Question>
      )}
    </div>
  );
}

interface OtherOrder {
  readonly order_id: number;
  readonly text: string;
}

/** Null when the list cannot be read; the menu then keeps the list that it has. */
async function openOrders(stationId: number): Promise<readonly OtherOrder[] | null> {
  const found: OtherOrder[] = [];
  for (let page = 1; ; page += 1) {
    const query = { status: "open", limit: ORDERS, before_id: found[found.length - 1]?.order_id } as const;
    const path = { station_id: stationId };
    const result = await call("GET /api/cashier/v1/stations/{station_id}/orders/", { path, query });
    if (!result.ok) return null;
    for (const { order_id, order_display_number, total, currency } of result.reply.orders) {
      found.push({ order_id, text: `${words().order(order_display_number)} · ${money(total, currency)}` });
    }
    if (!result.reply.has_more || page === MAX_PAGES) return found;
  }
}

/** Other unpaid orders of the station, for a guest who comes back. */
function OpenOrders({ stationId }: { readonly stationId: number }) {
  const open = useSignal<readonly OtherOrder[]>([]);
  const menu = useRef<HTMLDetailsElement>(null);
  const choose = (turn: () => unknown) => (): unknown => {
    menu.current?.querySelector("summary")?.focus();
    menu.current?.removeAttribute("open");
    return turn();
  };
  const current = order.value?.order_id ?? null;
  // Another order in its place would lose lines that are not stored.
  const because = isSaving.value ? "" : null;
  // Another tab or till may have opened or changed an order.
  const { order_id: shownId, revision } = live.value?.order ?? {};
  useEffect(() => {
    let isOver = false;
    void openOrders(stationId).then((found) => {
      if (!isOver && found !== null) open.value = found;
      return undefined;
    });
    return () => {
      isOver = true;
    };
  }, [stationId, current, shownId, revision]);
  const others = open.value.filter(({ order_id }) => order_id !== current);
  if (others.length === 0 && current === null) return null;
  return (
    <details ref={menu} class="menu">
      <summary class="button button-quiet">{words().openOrders}</summary>
      <ul class="menu-list card">
        {/* The reason applies to all buttons, so it is shown once. */}
        {isSaving.value && <li class="small soft">{words().stillSaving}</li>}
        {current !== null && (
          <li>
            <Button local kind="quiet" onClick={choose(startNewOrder)} disabledBecause={because}>
              {words().newOrder}
            </Button>
          </li>
        )}
        {others.map(({ order_id, text }) => (
          <li key={order_id}>
            <Button kind="quiet" onClick={choose(() => openOrder(order_id))} disabledBecause={because}>
              {text}
            </Button>
          </li>
        ))}
      </ul>
    </details>
  );
}
