/** The parties of a run with a device under test: the suite's world, the device, and the observer of its requests. */
import { setTimeout as delay } from "node:timers/promises";
import { clientLimits } from "../../limits.ts";
import { expectStatus, Mismatch, objectOf } from "../expect.ts";
import { DEVICE_ROOT, type Exchange, Party, type Wire } from "../http.ts";
import { CannotRun, type Collection, type World } from "../world.ts";
import type { DeviceUnderTest, PaymentAct } from "./device.ts";
import type { Observed, Observer } from "./observer.ts";

export type DeviceKind = "companion" | "display";

/** A time in which the device cannot send correct requests: it is off, or has no credential. */
interface Absence {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The headers that the curl line repeats, beside the credential. */
const REPEATED_HEADERS = ["content-type", "if-none-match"];

function exchangeOf(
  observed: Observed | undefined,
  { baseUrl, party }: { readonly baseUrl: string; readonly party: string },
): Exchange | undefined {
  if (observed === undefined) return undefined;
  const { method, operation, headers, text } = observed;
  const repeated = REPEATED_HEADERS.flatMap((name) => {
    const value = headers[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return {
    method,
    url: operation.startsWith("/") ? baseUrl + operation : baseUrl + DEVICE_ROOT + operation,
    request: { headers: Object.fromEntries(repeated), ...(text === "" ? {} : { body: text }) },
    party,
    hasToken: headers.authorization !== undefined,
    answer: undefined,
  };
}

const REPORT = "assignment/report/";
const OPEN = ["created", "presented", "processing"];

export class DeviceWorld {
  readonly wire: Wire;
  readonly world: World;
  readonly device: DeviceUnderTest;
  readonly observer: Observer;
  readonly kind: DeviceKind;
  readonly absences: Absence[] = [];
  readonly startedAtMs = performance.now();

  constructor(parts: Pick<DeviceWorld, "world" | "device" | "observer" | "kind">) {
    this.wire = this.#wireOfDevice(parts.world.wire);
    this.world = parts.world;
    this.device = parts.device;
    this.observer = parts.observer;
    this.kind = parts.kind;
  }

  /** A wire whose newest exchange is the device's: a failed check reports that one, not the cashier's last request. */
  #wireOfDevice(wire: Wire): Wire {
    const newest = () => exchangeOf(this.requests().at(-1), { baseUrl: wire.baseUrl, party: this.kind });
    return Object.defineProperty({ ...wire }, "last", { get: () => newest() ?? wire.last });
  }

  isTaken(): Promise<boolean> {
    return this.world.isTaken();
  }

  get deviceId(): number {
    const { companionId, displayId } = this.world.sandbox;
    return this.kind === "companion" ? companionId : displayId;
  }

  get code(): string {
    const { companionCode, displayCode } = this.world.sandbox;
    return this.kind === "companion" ? companionCode : displayCode;
  }

  /** The operation that this kind of device polls. */
  get polled(): "assignment/" | "display/" {
    return this.kind === "companion" ? "assignment/" : "display/";
  }

  /** The requests after a time; of one operation, or of all when it is undefined. */
  requests(operation?: string, sinceMs = 0): readonly Observed[] {
    return this.observer.requests.filter(
      (each) => each.atMs >= sinceMs && (operation === undefined || each.operation === operation),
    );
  }

  reportsOf({ intentId }: Pick<Collection, "intentId">): readonly Observed[] {
    return this.requests(REPORT).filter(({ json }) => json["intent_id"] === intentId);
  }

  /** Waits until the device has done something. A failure names what the suite waited for. */
  async until<T>(what: string, read: () => T | undefined, waitMs = this.device.stepMs): Promise<T> {
    const deadlineMs = performance.now() + waitMs;
    for (;;) {
      const found = read();
      if (found !== undefined) return found;
      if (performance.now() > deadlineMs) throw new Mismatch(what, `within ${Math.round(waitMs / 1_000)} s`, undefined);
      await delay(clientLimits.conformancePollMs, undefined, { signal: this.wire.signal });
    }
  }

  /** Waits while the device acts; afterwards the check verifies what the device did not do. */
  async watch(forMs: number): Promise<void> {
    await delay(forMs, undefined, { signal: this.wire.signal });
  }

  /** During this work the device need not keep its pace. */
  async absent<T>(work: () => Promise<T>): Promise<T> {
    const fromMs = performance.now();
    try {
      return await work();
    } finally {
      this.absences.push({ fromMs, toMs: performance.now() });
    }
  }

  /** Gives the device its code; returns its request and the credential in the answer. */
  async enroll(): Promise<{ readonly enrolled: Observed; readonly credential: string }> {
    const beganAtMs = performance.now();
    await this.device.enroll({ baseUrl: this.observer.baseUrl, code: this.code });
    const enrolled = await this.until("the device claims its code", () =>
      this.requests("enroll/", beganAtMs).find(({ answer }) => answer !== undefined && answer.status < 300),
    );
    const credential = String(enrolled.answer?.json["credential"]);
    // At the end the run verifies that the service refuses this credential.
    this.world.credentials.push(new Party(this.world.wire, this.kind, DEVICE_ROOT, credential));
    return { enrolled, credential };
  }

  /** Ends the device's credential and issues a new code for it. */
  async reset(): Promise<void> {
    expectStatus(await this.world.owner.change("POST", `devices/${this.deviceId}/reset/`), 200);
  }

  async issueCode(): Promise<void> {
    const answer = await this.world.owner.send("POST", `devices/${this.deviceId}/enrollment-codes/`, { json: {} });
    const code = String(objectOf(expectStatus(answer, 201))["code"]);
    this.world.sandbox = {
      ...this.world.sandbox,
      ...(this.kind === "companion" ? { companionCode: code } : { displayCode: code }),
    };
  }

  async whileSuspended(work: () => Promise<void>): Promise<void> {
    const path = `devices/${this.deviceId}`;
    const reason = { json: { reason: "Conformance suite" } };
    expectStatus(await this.world.owner.change("POST", `${path}/suspend/`, reason), 200);
    try {
      await work();
    } finally {
      expectStatus(await this.world.owner.change("POST", `${path}/resume/`, reason), 200);
    }
  }

  /** Begins a collection that the device fetches, and ends it after the work, also when the work fails. */
  async collecting(
    act: PaymentAct,
    work: (collection: Collection) => Promise<void>,
    options: { readonly lifetimeSeconds?: number; readonly before?: () => void } = {},
  ): Promise<void> {
    await this.device.payments(act);
    await this.offered("smart_pos");
    options.before?.();
    const collection = await this.world.collect("smart_pos", options);
    try {
      await work(collection);
    } finally {
      await this.end(collection);
    }
  }

  async offered(route: string): Promise<void> {
    const deadlineMs = performance.now() + this.device.stepMs;
    while (!(await this.world.routeOffered(route))) {
      if (performance.now() > deadlineMs) throw new CannotRun(`The cashier is not offered ${route}.`);
      await delay(clientLimits.conformancePollMs, undefined, { signal: this.wire.signal });
    }
  }

  /** Waits for a report of the collection that the service has accepted. */
  async reported(collection: Collection): Promise<Observed> {
    return this.until("the device reports", () =>
      this.reportsOf(collection).find(({ answer }) => answer?.status === 200),
    );
  }

  async end({ intentId, orderId }: Collection): Promise<void> {
    const { status } = await this.world.intent(intentId);
    if (OPEN.includes(String(status))) expectStatus(await this.world.decide(intentId, "cancel"), 200);
    if ((await this.world.order(orderId))["status"] === "open") await this.world.voidOrder(orderId);
  }
}
