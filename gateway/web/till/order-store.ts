/**
 * The order that this tab works on. The page shows a changed line at once and then sends it, one request at a time:
 *
 *   edit ──► shown ──► sent (the newest lines) ──► the service's order replaces the page's
 *
 * A collection can begin only when the page shows the lines that the service has stored.
 */
import { computed, signal } from "@preact/signals";
import { call, isOffline, isStillOpen, newKey } from "../shared/call.ts";
import type { Failure } from "../shared/failures.ts";
import { fieldFault } from "../shared/field-error-texts.ts";
import type { ReplyOf, RequestOf } from "../shared/operations.ts";
import { returns, stationId } from "./session.ts";

type Order = ReplyOf<"GET /api/cashier/v1/orders/{order_id}/">;
type SentLine = RequestOf<"PUT /api/cashier/v1/orders/{order_id}/lines/">["body"]["lines"][number];
export type Item = ReplyOf<"GET /api/cashier/v1/stations/{station_id}/catalogue-items/">["items"][number];

/** A line as the page shows it. It has an `itemId` until the service returns it with its name and price. */
export interface Line {
  readonly name: string;
  readonly unitAmount: string;
  readonly quantity: number;
  readonly itemId?: number;
}

/** The service's limit (`BOUNDS.lineQuantity`) is higher, but a larger quantity is a typing mistake. */
const MAX_QUANTITY = 999;

export const order = signal<Order | null>(null);
export const lines = signal<readonly Line[]>([]);
export const orderFailure = signal<Failure | null>(null);
/** The lines of the last request that failed: the pointers of its errors refer to them. */
const refusedLines = signal<readonly Line[]>([]);
/** Increases when the service refuses an item that is no longer in the catalogue: the page then reads the catalogue again. */
export const missingItems = signal(0);
const unsaved = signal(false);
const isSending = signal(false);
/** Whether the page shows lines that the service has not stored yet. */
export const isSaving = computed(() => unsaved.value || isSending.value);

/** The idempotency key for opening the order. The first line opens it; each further order has a new key. */
let openKey = newKey();
/** The lines of the first request that opens the order; null before that request. */
let openLines: readonly Line[] | null = null;
/** Increases when the tab shows another order: an answer for the previous order is then ignored. */
let turns = 0;
/** Increases when the tab requests another order: only the last requested order is shown. */
let choices = 0;

export function startNewOrder(): void {
  turns += 1;
  choices += 1;
  openKey = newKey();
  openLines = null;
  order.value = null;
  lines.value = [];
  unsaved.value = false;
  orderFailure.value = null;
}

/** `keepsLines`: the page keeps the lines that it shows, because the answer does not have them all. */
function show(found: Order, keepsLines: boolean): void {
  const known = order.peek();
  // Answers may arrive in another order than the service has sent them.
  const isOlder = known?.order_id === found.order_id && found.revision < known.revision;
  const newest = isOlder ? known : found;
  order.value = newest;
  if (keepsLines) return;
  lines.value = newest.lines.map(({ name, unit_amount, quantity }) => ({ name, unitAmount: unit_amount, quantity }));
}

/**
 * Loads an order from the service and shows it. It may be the order that the tab already shows. While lines are not stored, the
 * tab shows no other order.
 */
export async function openOrder(orderId: number): Promise<void> {
  const isAnother = order.peek()?.order_id !== orderId;
  if (isAnother) choices += 1;
  const [turn, choice] = [turns, choices];
  const result = await call("GET /api/cashier/v1/orders/{order_id}/", { path: { order_id: orderId } });
  if (isAnother ? choice !== choices : turn !== turns) return;
  if (!result.ok) {
    orderFailure.value = result;
    return;
  }
  if (isAnother && isSaving.peek()) return;
  if (isAnother) turns += 1;
  // While lines are not stored, the page keeps showing why.
  if (!unsaved.peek()) orderFailure.value = null;
  show(result.reply, isSaving.peek());
}

/** Reloads the order when another tab or the payment has changed it. */
export function noteRevision(orderId: number, revision: number): void {
  const known = order.peek();
  if (known?.order_id === orderId && known.revision < revision && !isSaving.peek()) void openOrder(orderId);
}

const isSame = (left: Line, right: Line): boolean => left.name === right.name && left.unitAmount === right.unitAmount;

/** Why the service has refused this line; null when it has not. */
export function lineFault(line: Line): string | null {
  const failure = orderFailure.value;
  const start = `/lines/${refusedLines.value.findIndex((one) => isSame(one, line))}/`;
  const error = failure?.errors?.find(({ pointer }) => pointer.startsWith(start));
  return error === undefined ? null : fieldFault(failure, error.pointer);
}

export function addItem(item: Item): void {
  addLine({ name: item.name, unitAmount: item.unit_amount, quantity: 1, itemId: item.item_id });
}

export function addLine(line: Line): void {
  const index = lines.peek().findIndex((one) => isSame(one, line));
  if (index < 0) edit([...lines.peek(), line]);
  else changeQuantity(index, line.quantity);
}

export function changeQuantity(index: number, by: number): void {
  const changed = lines.peek().map((line, place) => {
    return place === index ? { ...line, quantity: Math.min(line.quantity + by, MAX_QUANTITY) } : line;
  });
  edit(changed.filter(({ quantity }) => quantity > 0));
}

function edit(changed: readonly Line[]): void {
  // The cashier has removed the only line, which was refused: there is nothing to open.
  if (changed.length === 0 && order.peek() === null && openLines === null) return startNewOrder();
  lines.value = changed;
  unsaved.value = true;
  void save();
}

export async function save(): Promise<void> {
  if (isSending.peek()) return;
  isSending.value = true;
  while (unsaved.peek()) {
    unsaved.value = false;
    const turn = turns;
    const { sent, result } = await send(lines.peek());
    if (turn !== turns) continue;
    if (!result.ok) {
      unsaved.value = true;
      refusedLines.value = sent;
      orderFailure.value = result;
      if (result.errors?.some(({ code }) => code === "not_in_catalogue") === true) missingItems.value += 1;
      // The order is paid or voided: the page shows which.
      const known = order.peek();
      if (result.code === "conflict" && known !== null) void openOrder(known.order_id);
      break;
    }
    orderFailure.value = null;
    show(result.reply, unsaved.peek());
  }
  isSending.value = false;
}

// The tab sends unsaved lines automatically when it can reach the service again.
isOffline.subscribe((isWithout) => {
  if (!isWithout && unsaved.peek()) void save();
});
returns.subscribe(() => {
  if (unsaved.peek()) void save();
});

const sentLine = ({ name, unitAmount, quantity, itemId }: Line): SentLine =>
  itemId === undefined ? { name, unit_amount: unitAmount, quantity } : { item_id: itemId, quantity };

/** Sends the newest lines, or the lines of the first request again. Returns the lines that it has sent. */
async function send(newest: readonly Line[]) {
  const known = order.peek();
  if (known !== null) {
    const path = { order_id: known.order_id };
    const request = { path, body: { lines: newest.map(sentLine) } };
    return { sent: newest, result: await call("PUT /api/cashier/v1/orders/{order_id}/lines/", request) };
  }
  // Repeats the first request unchanged, so that a lost answer opens no second order. A later request sends newer changes.
  if (openLines !== null && JSON.stringify(openLines) !== JSON.stringify(newest)) unsaved.value = true;
  openLines ??= newest;
  const sent = openLines;
  const request = { path: { station_id: stationId.peek() ?? 0 }, key: openKey, body: { lines: sent.map(sentLine) } };
  const result = await call("POST /api/cashier/v1/stations/{station_id}/orders/", request);
  if (result.ok || !isStillOpen(result)) {
    openLines = null;
    openKey = newKey();
  }
  return { sent, result };
}

/** Discards the unsaved changes and shows the order as the service has it. */
export async function discard(): Promise<void> {
  unsaved.value = false;
  orderFailure.value = null;
  const known = order.peek();
  if (known === null) startNewOrder();
  else await openOrder(known.order_id);
}

export async function voidOrder(orderId: number): Promise<Failure | null> {
  const result = await call("POST /api/cashier/v1/orders/{order_id}/void/", { path: { order_id: orderId } });
  const isShown = order.peek()?.order_id === orderId;
  if (!result.ok) {
    // The order is paid: the page shows it.
    if (result.code === "conflict" && isShown) await openOrder(orderId);
    return result;
  }
  if (isShown) startNewOrder();
  return null;
}
