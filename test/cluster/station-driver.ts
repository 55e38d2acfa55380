/** A station at work: its cashier collects one order after the other, its companion and its display poll. */
import { setTimeout as delay } from "node:timers/promises";
import { PAID_SHOWN_MS } from "../../machines/settings.ts";
import type { ChaosStation } from "../chaos/chaos-world.ts";
import { linesOf } from "../chaos/collection-client.ts";
import { OUTAGE_REASONS } from "../chaos/qr-collection.ts";
import type { Random } from "../chaos/random.ts";
import type { Answer, Refused } from "../support/http.ts";
import type { ClusterWorld } from "./cluster-world.ts";
import type { EndedCollection, History, Progress, QrCourse } from "./history.ts";
import { Pace } from "./pace.ts";
import { STALE_AFTER_MS } from "./stale-answers.ts";
import { TaggedPoll } from "./tagged-poll.ts";
import { StuckError, TrialClient, workUntil } from "./trial-client.ts";

/** The pause between polls leaves room for heartbeats: the throttle allows a device one request a second. */
const COMPANION_POLL_MS = 1_300;
const DISPLAY_POLL_MS = 1_100;
const HEARTBEAT_MS = 8_000;
/** A device is offline after 25 s of silence; a gateway that reports it earlier is wrong. */
const OFFLINE_AFTER_MS = 25_000;
const DISTINCT_AMOUNTS = 99_999;
/** The share of collections by QR, in a trial with a provider. */
const QR_PROBABILITY = 0.25;
/** Ends of amounts that the sandbox provider approves, some with a callback that comes three times, never, or before the QR. */
const PAID_ENDINGS = [0, 0, 0, 4, 19, 21] as const;
/** How often the cashier checks whether the guest has paid. */
const LOOK_MS = 400;
/** A callback that no gateway accepted is sent again after a pause that doubles with each attempt. */
const QR_ENDED_WITHIN_MS = 90_000;
/**
 * How long a display shows the order of a QR for certain after a request that found it unpaid. The answer may have been old by
 * then, and the clocks of the host and the gateway may differ as much.
 */
const QR_SHOWN_MS = PAID_SHOWN_MS - 2 * STALE_AFTER_MS;
/** How long a companion may get other answers than the collection that waits for it. */
const FETCHED_WITHIN_MS = 60_000;

interface Order {
  readonly order_id: number;
  readonly order_display_number: number;
}
interface Intent {
  readonly intent_id: number;
  readonly status: string;
  readonly end_reason: string;
  readonly attestation: { readonly transaction_id: number } | null;
  readonly provider: { readonly provider_reference: string } | null;
}
interface AssignmentReply {
  readonly assignment: { readonly intent_id: number; readonly amount: string; readonly currency: string } | null;
}
interface DisplayState {
  readonly state: string;
  readonly order_display_number: number;
  readonly amount: string;
  readonly currency: string;
  readonly qr_payload: string;
  readonly intent_status: string;
}

type Ended = Omit<EndedCollection, "stationId" | "acknowledgedAtMs">;
/** What was begun: the order, its sum and how it is paid. */
type Begun = Pick<EndedCollection, "route" | "amountMinor"> & { readonly order: Order };
/** A display may lack the order until `shownFromMs`. This is infinite when the answer has `X-Effective: false`. */
type Opened = Order & { readonly shownFromMs: number };

function endedAs(
  end: EndedCollection["end"],
  {
    order,
    intent,
    reference = "",
    qr,
    ...facts
  }: Begun & {
    readonly intent: Intent;
    readonly events: readonly string[];
    readonly reference?: string | undefined;
    readonly qr?: QrCourse;
  },
): Ended {
  const transactionId = end === "paid" ? intent.attestation?.transaction_id : undefined;
  const { order_id: orderId, order_display_number: orderDisplayNumber } = order;
  return { ...facts, orderId, orderDisplayNumber, intentId: intent.intent_id, end, transactionId, reference, qr };
}

/** Several drivers may work at one station one after another. So each driver has different keys. */
let drivers = 0;

export class StationDriver {
  readonly #name: string;
  readonly #station: ChaosStation;
  readonly #history: History;
  readonly #random: Random;
  readonly #pace: Pace;
  readonly #cashier: TrialClient;
  readonly #companion: TrialClient;
  readonly #assignments: TaggedPoll<AssignmentReply>;
  readonly #heart: TrialClient;
  readonly #display: TrialClient;
  readonly #displayed: TaggedPoll<DisplayState>;
  readonly #hasProvider: boolean;
  #isStopped = false;
  #beatAtMs = performance.now();
  #count = 0;

  constructor(world: ClusterWorld, station: ChaosStation, history: History, random: Random, pace = new Pace()) {
    const { gateways, cashier, provider } = world;
    const { stationId } = station;
    const client = (caller: typeof cashier | ChaosStation["companion"]) =>
      new TrialClient({ caller, gateways, history, stationId });
    drivers += 1;
    this.#name = `driver-${drivers}`;
    this.#station = station;
    this.#history = history;
    this.#random = random;
    this.#pace = pace;
    this.#cashier = client(cashier);
    this.#companion = client(station.companion);
    this.#assignments = new TaggedPoll(this.#companion, "assignment");
    this.#heart = client(station.companion);
    this.#display = client(station.display);
    this.#displayed = new TaggedPoll(this.#display, "display");
    this.#hasProvider = provider !== undefined;
  }

  /** Works until `stop`; resolves when the collection under way is over. */
  async run(): Promise<void> {
    await Promise.all([this.#untilStopped(() => this.#collect()), this.#beat(), this.#watch()]);
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #untilStopped(work: () => Promise<void>): Promise<void> {
    await workUntil(() => this.#isStopped, work);
  }

  #beat(): Promise<void> {
    return this.#untilStopped(async () => {
      await this.#heart.send("heartbeat", "POST", "heartbeat/", { body: {} });
      this.#beatAtMs = performance.now();
      await this.#pause(HEARTBEAT_MS);
    });
  }

  #watch(): Promise<void> {
    return this.#untilStopped(async () => {
      const askedAtMs = performance.now();
      const view = await this.#displayed.view();
      this.#history.shown.push({
        stationId: this.#station.stationId,
        gateway: this.#display.gateway,
        askedAtMs,
        answeredAtMs: performance.now(),
        state: view.state,
        orderDisplayNumber: view.order_display_number,
        amount: view.amount,
        currency: view.currency,
        qrPayload: view.qr_payload,
        intentStatus: view.intent_status,
      });
      await this.#pause(DISPLAY_POLL_MS);
    });
  }

  async #pause(ms: number): Promise<void> {
    for (let left = ms; left > 0 && !this.#isStopped; left -= 200) await delay(Math.min(left, 200));
  }

  async #collect(): Promise<void> {
    this.#count += 1;
    const name = `${this.#name}-${this.#count}`;
    const byQr = this.#hasProvider && this.#random.chance(QR_PROBABILITY);
    const ended = await (byQr ? this.#collectByQr(name) : this.#collectAtCounter(name));
    this.#history.ended.push({ ...ended, stationId: this.#station.stationId, acknowledgedAtMs: performance.now() });
    if (ended.end === "cancelled") await this.#cashier.send("void", "POST", `orders/${ended.orderId}/void/`);
    await this.#pause(this.#pace.nextGuestMs);
  }

  async #collectAtCounter(name: string): Promise<Ended> {
    const draw = this.#random.next();
    const route = draw < 0.6 ? "smart_pos" : draw < 0.9 ? "cash" : "attested_terminal";
    const isPaid = this.#random.chance(0.85);
    const amountMinor = this.#random.between(1, DISTINCT_AMOUNTS);
    const order = await this.#open(name, amountMinor);
    const begun = { order, route, amountMinor };
    const intent = await this.#create(name, order, route);
    const events = ["intent_created"];
    const slip = `${name}-slip`;
    if (route === "smart_pos") {
      await this.#fetch(intent, amountMinor);
      this.#progressed(order, "presented");
      await delay(COMPANION_POLL_MS);
      await this.#companion.send("report", "POST", "assignment/report/", {
        body: {
          intent_id: intent.intent_id,
          outcome: "reported_success",
          provider_reference: slip,
          client_idempotency_key: `${name}-report`,
        },
      });
      this.#progressed(order, "processing");
      events.push("intent_presented", "outcome_reported");
    }
    const at = this.#at(intent);
    this.#wasOpen(order, performance.now());
    if (isPaid) {
      const body = route === "attested_terminal" ? { reference: `${name}-terminal` } : {};
      const settled = await this.#keyed<Intent>("attest", `${at}attest/`, `${name}-attest`, body);
      events.push("settlement_started", "intent_succeeded");
      // The attestation inherits the reference that the companion reported; cash has none.
      const reference = route === "smart_pos" ? slip : body.reference;
      return endedAs("paid", { ...begun, intent: settled, events, reference });
    }
    await this.#keyed("cancel", `${at}cancel/`, `${name}-cancel`, {});
    events.push("intent_cancelled");
    return endedAs("cancelled", { ...begun, intent, events });
  }

  /** The provider's reports arrive independently of the cashier, so the driver waits for the end. */
  async #collectByQr(name: string): Promise<Ended> {
    const amountMinor = 100 * this.#random.between(1, 999) + this.#random.pick(PAID_ENDINGS);
    const order = await this.#open(name, amountMinor);
    const begun = { order, route: "dynamic_qr", amountMinor };
    const askedAtMs = performance.now();
    const { intent_id } = await this.#create(name, order, "dynamic_qr");
    const createdAtMs = performance.now();
    const deadlineMs = createdAtMs + QR_ENDED_WITHIN_MS;
    for (let unpaidAtMs = askedAtMs; ; ) {
      const readAtMs = performance.now();
      const { body: intent } = await this.#cashier.send<Intent>("read", "GET", this.#at({ intent_id }));
      const { status, end_reason: endReason, provider } = intent;
      const facts = { ...begun, intent, qr: { askedAtMs, createdAtMs, endReason } };
      if (status === "succeeded") {
        this.#wasOpen(order, Math.min(performance.now(), unpaidAtMs + QR_SHOWN_MS));
        const events = ["intent_created", "provider_confirmed", "intent_succeeded"];
        return endedAs("paid", { ...facts, events, reference: provider?.provider_reference });
      }
      // Whether the fault of this time may end a QR is judged after the trial.
      if (status === "cancelled" && OUTAGE_REASONS.includes(endReason)) {
        this.#wasOpen(order, performance.now());
        return endedAs("cancelled", { ...facts, events: ["intent_created", "provider_failed"] });
      }
      const title = `Station ${this.#station.stationId}: intent ${intent_id}, whose QR the guest paid, is ${status} ${endReason}`;
      if (status === "cancelled" || status === "expired" || performance.now() > deadlineMs) {
        this.#history.stuck.push(`${title}${this.#history.duringFault(performance.now())}.`);
        throw new StuckError(title);
      }
      unpaidAtMs = readAtMs;
      await delay(LOOK_MS);
    }
  }

  async #open(name: string, amountMinor: number): Promise<Opened> {
    const path = `${this.#station.path}/orders/`;
    const request = { key: `${name}-order`, body: linesOf(amountMinor) };
    const { body: order, headers } = await this.#cashier.send<Order>("order", "POST", path, request);
    const isEffective = headers.get("x-effective") !== "false";
    return { ...order, shownFromMs: isEffective ? performance.now() : Number.POSITIVE_INFINITY };
  }

  /** Records that a display had to show the order from its opening until this moment. */
  #wasOpen({ order_display_number: orderDisplayNumber, shownFromMs: fromMs }: Opened, untilMs: number): void {
    this.#history.opened.push({ stationId: this.#station.stationId, orderDisplayNumber, fromMs, untilMs });
  }

  /** Records that the order's collection has reached this status by now. */
  #progressed({ order_display_number: orderDisplayNumber }: Order, intentStatus: Progress["intentStatus"]): void {
    const { stationId } = this.#station;
    this.#history.progressed.push({ stationId, orderDisplayNumber, intentStatus, atMs: performance.now() });
  }

  #at({ intent_id }: Pick<Intent, "intent_id">): string {
    return `${this.#station.path}/intents/${intent_id}/`;
  }

  async #keyed<T>(step: string, path: string, key: string, body: object): Promise<T> {
    return (await this.#cashier.send<T>(step, "POST", path, { key, body })).body;
  }

  async #create(name: string, order: Order, route: string): Promise<Intent> {
    const request = { key: `${name}-intent`, body: { order_id: order.order_id, route } };
    const isOffline = ({ body }: Answer<Refused>): boolean =>
      body.reason === "device_offline" && performance.now() - this.#beatAtMs > OFFLINE_AFTER_MS;
    for (;;) {
      const path = `${this.#station.path}/intents/`;
      const answer = await this.#cashier.send<Intent>("create", "POST", path, request, isOffline);
      if (answer.status < 300) {
        this.#progressed(order, "created");
        return answer.body;
      }
      await delay(COMPANION_POLL_MS);
    }
  }

  async #fetch({ intent_id }: Intent, amountMinor: number): Promise<void> {
    const { stationId } = this.#station;
    const handed = { intentId: intent_id, amountMinor, atMs: performance.now() };
    for (;;) {
      await delay(COMPANION_POLL_MS);
      const askedAtMs = performance.now();
      const { assignment: found } = await this.#assignments.view();
      const assignment =
        found === null ? undefined : { intentId: found.intent_id, amount: found.amount, currency: found.currency };
      const { gateway } = this.#companion;
      this.#history.fetched.push({ stationId, gateway, askedAtMs, assignment, handed });
      if (assignment?.intentId === intent_id) return;
      if (askedAtMs - handed.atMs > FETCHED_WITHIN_MS) {
        const title = `Station ${stationId}: the companion does not get intent ${intent_id}`;
        this.#history.stuck.push(`${title}${this.#history.duringFault(askedAtMs)}.`);
        throw new StuckError(title);
      }
    }
  }
}
