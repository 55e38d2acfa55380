/** A station at work: its cashier collects one order after the other, its companion and its display poll. */
import { setTimeout as delay } from "node:timers/promises";
import type { ChaosStation } from "../chaos/chaos-world.ts";
import { linesOf } from "../chaos/collection-client.ts";
import type { Random } from "../chaos/random.ts";
import type { Answer, Refused } from "../support/http.ts";
import type { ClusterWorld } from "./cluster-world.ts";
import type { EndedCollection, History } from "./history.ts";
import { StuckError, TrialClient } from "./trial-client.ts";

/** The companion's pace, heartbeats included: the throttle lets one request a second through. */
const COMPANION_POLL_MS = 1_300;
const DISPLAY_POLL_MS = 1_100;
const HEARTBEAT_MS = 8_000;
/** Before the cashier's next collection: without it, nine stations keep two cores busy, and the machine is what is measured. */
const NEXT_GUEST_MS = 400;
/** A device is offline after 25 s of silence; a gateway that reports it earlier is wrong. */
const OFFLINE_AFTER_MS = 25_000;
const DISTINCT_AMOUNTS = 99_999;

interface Order {
  readonly order_id: number;
  readonly order_display_number: number;
}
interface Intent {
  readonly intent_id: number;
  readonly attestation: { readonly transaction_id: number } | null;
}
interface AssignmentReply {
  readonly assignment: { readonly intent_id: number } | null;
}
interface DisplayState {
  readonly state: string;
  readonly order_display_number: number;
}

/** Drivers of one station may follow one another: each has keys of its own. */
let drivers = 0;

export class StationDriver {
  readonly #name: string;
  readonly #station: ChaosStation;
  readonly #history: History;
  readonly #random: Random;
  readonly #cashier: TrialClient;
  readonly #companion: TrialClient;
  readonly #heart: TrialClient;
  readonly #display: TrialClient;
  #isStopped = false;
  #heardAtMs = performance.now();
  #count = 0;

  constructor(world: ClusterWorld, station: ChaosStation, history: History, random: Random) {
    const { gateways, cashier } = world;
    const { stationId } = station;
    const client = (caller: typeof cashier | ChaosStation["companion"]) =>
      new TrialClient({ caller, gateways, history, stationId });
    drivers += 1;
    this.#name = `driver-${drivers}`;
    this.#station = station;
    this.#history = history;
    this.#random = random;
    this.#cashier = client(cashier);
    this.#companion = client(station.companion);
    this.#heart = client(station.companion);
    this.#display = client(station.display);
  }

  /** Works until `stop`; resolves when the collection under way is over. */
  async run(): Promise<void> {
    await Promise.all([this.#untilStopped(() => this.#collect()), this.#beat(), this.#watch()]);
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #untilStopped(work: () => Promise<void>): Promise<void> {
    try {
      while (!this.#isStopped) await work();
    } catch (error) {
      // It is in the history, and the trial fails by it.
      if (!(error instanceof StuckError)) throw error;
    }
  }

  #beat(): Promise<void> {
    return this.#untilStopped(async () => {
      await this.#heart.send("heartbeat", "POST", "heartbeat/", { body: {} });
      this.#heardAtMs = performance.now();
      await this.#pause(HEARTBEAT_MS);
    });
  }

  #watch(): Promise<void> {
    return this.#untilStopped(async () => {
      const askedAtMs = performance.now();
      const { body } = await this.#display.send<DisplayState>("display", "GET", "display/");
      this.#history.shown.push({
        stationId: this.#station.stationId,
        gateway: this.#display.gateway,
        askedAtMs,
        state: body.state,
        orderDisplayNumber: body.order_display_number,
      });
      await this.#pause(DISPLAY_POLL_MS);
    });
  }

  async #pause(ms: number): Promise<void> {
    for (let left = ms; left > 0 && !this.#isStopped; left -= 200) await delay(Math.min(left, 200));
  }

  async #collect(): Promise<void> {
    this.#count += 1;
    const { stationId, path } = this.#station;
    const name = `${this.#name}-${this.#count}`;
    const draw = this.#random.next();
    const route = draw < 0.6 ? "smart_pos" : draw < 0.9 ? "cash" : "attested_terminal";
    const isPaid = this.#random.chance(0.85);
    const order = await this.#keyed<Order>("order", `${path}/orders/`, `${name}-order`, {
      ...linesOf(this.#random.between(1, DISTINCT_AMOUNTS)),
    });
    const intent = await this.#create(name, order, route);
    const events = ["intent_created"];
    if (route === "smart_pos") {
      await this.#fetch(intent);
      await delay(COMPANION_POLL_MS);
      await this.#companion.send("report", "POST", "assignment/report/", {
        body: {
          intent_id: intent.intent_id,
          outcome: "reported_success",
          provider_reference: `${name}-slip`,
          client_idempotency_key: `${name}-report`,
        },
      });
      events.push("intent_presented", "outcome_reported");
    }
    const at = `${path}/intents/${intent.intent_id}`;
    let transactionId: number | undefined;
    if (isPaid) {
      const body = route === "attested_terminal" ? { reference: `${name}-terminal` } : {};
      const settled = await this.#keyed<Intent>("attest", `${at}/attest/`, `${name}-attest`, body);
      transactionId = settled.attestation?.transaction_id;
      events.push("settlement_started", "intent_succeeded");
    } else {
      await this.#keyed("cancel", `${at}/cancel/`, `${name}-cancel`, {});
      events.push("intent_cancelled");
    }
    const ended: EndedCollection = {
      stationId,
      orderId: order.order_id,
      orderDisplayNumber: order.order_display_number,
      intentId: intent.intent_id,
      end: isPaid ? "paid" : "cancelled",
      transactionId,
      events,
      acknowledgedAtMs: performance.now(),
    };
    this.#history.ended.push(ended);
    if (!isPaid) await this.#cashier.send("void", "POST", `orders/${order.order_id}/void/`);
    await this.#pause(NEXT_GUEST_MS);
  }

  async #keyed<T>(step: string, path: string, key: string, body: object): Promise<T> {
    return (await this.#cashier.send<T>(step, "POST", path, { key, body })).body;
  }

  async #create(name: string, order: Order, route: string): Promise<Intent> {
    const request = { key: `${name}-intent`, body: { order_id: order.order_id, route } };
    const isOffline = ({ body }: Answer<Refused>): boolean =>
      body.reason === "device_offline" && performance.now() - this.#heardAtMs > OFFLINE_AFTER_MS;
    for (;;) {
      const path = `${this.#station.path}/intents/`;
      const answer = await this.#cashier.send<Intent>("create", "POST", path, request, isOffline);
      if (answer.status < 300) return answer.body;
      await delay(COMPANION_POLL_MS);
    }
  }

  async #fetch({ intent_id }: Intent): Promise<void> {
    for (;;) {
      await delay(COMPANION_POLL_MS);
      const { body } = await this.#companion.send<AssignmentReply>("assignment", "GET", "assignment/");
      if (body.assignment?.intent_id === intent_id) return;
    }
  }
}
