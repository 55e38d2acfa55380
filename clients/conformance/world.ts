/**
 * The parties of one run at one sandbox: the owner, the sandbox's cashier and its two devices. A reset at the beginning
 * removes the data of earlier runs; a reset at the end removes the data of this run.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { clientLimits } from "../limits.ts";
import { asObject, expectStatus, Mismatch, objectOf, shown } from "./expect.ts";
import { DEVICE_ROOT, Party, type SuiteAnswer, type Wire } from "./http.ts";

export interface LogIn {
  readonly email: string;
  readonly password: string;
}

/** A session that another program has opened for the run. */
export interface OpenSession {
  readonly token: string;
}

export interface FreshSandbox {
  readonly sandboxId: number;
  /** The time of the reset, which identifies it. */
  readonly resetAt: string;
  readonly stationId: number;
  readonly displayId: number;
  readonly displayCode: string;
  readonly companionId: number;
  readonly companionCode: string;
  readonly cashier: LogIn;
}

/** An enrolled device: its party, and the answer to the enrollment. */
export interface Enrolled {
  readonly party: Party;
  readonly answer: SuiteAnswer;
  readonly code: string;
}

export interface Collection {
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  readonly intentId: number;
  readonly intentDisplayNumber: number;
}

/** An amount without a special behaviour at the sandbox provider. */
export const AMOUNT = "25.50";
export interface Line {
  readonly name: string;
  readonly quantity: number;
  readonly unit_amount: string;
}

const LINES: readonly Line[] = [
  { name: "Soup of the day", quantity: 2, unit_amount: "12.50" },
  { name: "Bread", quantity: 1, unit_amount: "0.50" },
];

/** A step that the suite itself needs has failed, so the checks that need it cannot run. */
export class CannotRun extends Error {
  override readonly name: string = "CannotRun";
}

/** The run ended without a result, and could not end everything that it had begun. */
export class LeftBehind extends CannotRun {
  override readonly name = "LeftBehind";

  constructor(cause: unknown, left: readonly string[]) {
    super(`${cause instanceof Error ? cause.message : String(cause)} Left behind: ${left.join("; ")}`, { cause });
  }
}

export class World {
  readonly wire: Wire;
  readonly owner: Party;
  /** A party without a token, at the device API. */
  readonly anonymous: Party;
  readonly currency: string;
  sandbox: FreshSandbox;
  #cashier: Party | undefined;
  /** The time of the companion's last heartbeat. */
  #beatAtMs = -Infinity;
  #devices: { companion?: Enrolled; display?: Enrolled } = {};
  /** Every credential that this run has received, for the check that none stays valid. */
  readonly credentials: Party[] = [];

  constructor(wire: Wire, owner: Party, sandbox: FreshSandbox, currency: string) {
    this.wire = wire;
    this.owner = owner;
    this.sandbox = sandbox;
    this.currency = currency;
    this.anonymous = new Party(wire, "anonymous", DEVICE_ROOT);
  }

  get cashier(): Party {
    if (this.#cashier === undefined) throw new CannotRun("The cashier has no session.");
    return this.#cashier;
  }

  get hasCashier(): boolean {
    return this.#cashier !== undefined;
  }

  get companion(): Party {
    return this.#enrolled("companion").party;
  }

  get display(): Party {
    return this.#enrolled("display").party;
  }

  #enrolled(which: "companion" | "display"): Enrolled {
    const enrolled = this.#devices[which];
    if (enrolled === undefined) throw new CannotRun(`The ${which} is not enrolled.`);
    return enrolled;
  }

  enrollment(which: "companion" | "display"): Enrolled {
    return this.#enrolled(which);
  }

  async logInCashier(): Promise<void> {
    this.#cashier = await logIn(this.wire, "cashier", this.sandbox.cashier);
    await untilKnown(this.cashier, "session/", this.wire.signal);
    expectStatus(await this.holdStation(this.cashier), 200);
  }

  /** Takes the station, or renews its lease. */
  holdStation(cashier: Party): Promise<SuiteAnswer> {
    const json = { lifetime_seconds: clientLimits.conformanceLeaseSeconds };
    return cashier.send("POST", `stations/${this.sandbox.stationId}/lease/`, { json });
  }

  /** Whether another run or a person has reset the sandbox meanwhile: results of this run are then meaningless. */
  async isTaken(owner = this.owner): Promise<boolean> {
    const { sandboxId, resetAt } = this.sandbox;
    const { status, body } = await owner.send("GET", `sandboxes/${sandboxId}/`);
    return status === 200 && (body as { reset_at?: unknown } | undefined)?.reset_at !== resetAt;
  }

  /** The same token at another API, which must refuse it. */
  as(party: Party, api: "cashier" | "backoffice"): Party {
    return party.at(`/api/${api}/v1/`);
  }

  async enroll(which: "companion" | "display"): Promise<void> {
    const code = which === "companion" ? this.sandbox.companionCode : this.sandbox.displayCode;
    const answer = await this.claim(code);
    const credential = answer.status < 300 ? objectOf(answer)["credential"] : undefined;
    if (typeof credential !== "string") throw new Mismatch("answer to enroll", "a credential", shown(answer));
    const party = new Party(this.wire, which, DEVICE_ROOT, credential, true);
    // Only then, because the request counts at the throttle.
    if (answer.headers.get("x-effective") === "false") await untilKnown(party, "me/", this.wire.signal);
    this.#devices = { ...this.#devices, [which]: { party, answer, code } };
    this.credentials.push(party);
  }

  /** An address has ten attempts a minute; another run at the same address may have used some of them. */
  async claim(code: string): Promise<SuiteAnswer> {
    const answer = await this.anonymous.send("POST", "enroll/", { json: { code } });
    if (answer.status !== 429) return answer;
    const waitMs = Number(answer.headers.get("retry-after") ?? "1") * 1_000;
    await delay(Math.min(waitMs, clientLimits.conformanceEnrollMs), undefined, { signal: this.wire.signal });
    return this.anonymous.send("POST", "enroll/", { json: { code } });
  }

  /** Ends the device's credential, and returns a new code. */
  async resetDevice(
    which: "companion" | "display",
    lifetime: { readonly lifetime_seconds?: number } = {},
  ): Promise<string> {
    const deviceId = which === "companion" ? this.sandbox.companionId : this.sandbox.displayId;
    expectStatus(await this.owner.change("POST", `devices/${deviceId}/reset/`), 200);
    const issued = await this.owner.send("POST", `devices/${deviceId}/enrollment-codes/`, { json: lifetime });
    this.#devices = Object.fromEntries(Object.entries(this.#devices).filter(([name]) => name !== which));
    return String(objectOf(expectStatus(issued, 201))["code"]);
  }

  /** The owner resets the companion, and it enrolls again with the new code. */
  async enrollCompanionAgain(): Promise<void> {
    const companionCode = await this.resetDevice("companion");
    this.sandbox = { ...this.sandbox, companionCode };
    await this.enroll("companion");
    await this.beat("companion");
  }

  async openOrder(lines = LINES): Promise<Pick<Collection, "orderId" | "orderDisplayNumber">> {
    const path = `stations/${this.sandbox.stationId}/orders/`;
    const order = objectOf(expectStatus(await this.cashier.send("POST", path, { json: { lines } }), 201));
    return { orderId: Number(order["order_id"]), orderDisplayNumber: Number(order["order_display_number"]) };
  }

  /** Opens an order and starts its collection by the route. */
  async collect(
    route: string,
    options: { readonly lifetimeSeconds?: number; readonly lines?: readonly Line[] } = {},
  ): Promise<Collection> {
    // On a slow network the checks since its last heartbeat may have taken so long that the companion is offline.
    const isLive = performance.now() - this.#beatAtMs < clientLimits.conformanceBeatMs;
    if (route === "smart_pos" && this.#devices.companion !== undefined && !isLive) await this.beat();
    const order = await this.openOrder(options.lines);
    const answer = await this.createIntent(route, order.orderId, options);
    const intent = objectOf(expectStatus(answer, 201));
    return {
      ...order,
      intentId: Number(intent["intent_id"]),
      intentDisplayNumber: Number(intent["intent_display_number"]),
    };
  }

  createIntent(
    route: string,
    orderId: number,
    { lifetimeSeconds, isConfirmed }: { readonly lifetimeSeconds?: number; readonly isConfirmed?: true } = {},
  ): Promise<SuiteAnswer> {
    const json = {
      order_id: orderId,
      route,
      ...(isConfirmed === undefined ? {} : { confirms_money_may_have_moved: true }),
      ...(lifetimeSeconds === undefined ? {} : { lifetime_seconds: lifetimeSeconds }),
    };
    return this.cashier.send("POST", `stations/${this.sandbox.stationId}/intents/`, { json });
  }

  async intent(intentId: number): Promise<Record<string, unknown>> {
    const answer = await this.cashier.send("GET", `stations/${this.sandbox.stationId}/intents/${intentId}/`);
    return objectOf(expectStatus(answer, 200));
  }

  async order(orderId: number): Promise<Record<string, unknown>> {
    return objectOf(expectStatus(await this.cashier.send("GET", `orders/${orderId}/`), 200));
  }

  decide(intentId: number, decision: "attest" | "cancel", json: object = {}): Promise<SuiteAnswer> {
    return this.cashier.send("POST", `stations/${this.sandbox.stationId}/intents/${intentId}/${decision}/`, { json });
  }

  /** Cancels a collection and voids its order: the station is as before. */
  async discard({ intentId, orderId }: Pick<Collection, "intentId" | "orderId">): Promise<void> {
    expectStatus(await this.decide(intentId, "cancel"), 200);
    await this.voidOrder(orderId);
  }

  async voidOrder(orderId: number): Promise<void> {
    expectStatus(await this.cashier.send("POST", `orders/${orderId}/void/`), 200);
  }

  async routeOffered(route: string): Promise<boolean> {
    const answer = await this.cashier.send("GET", `stations/${this.sandbox.stationId}/routes/`);
    const routes = objectOf(expectStatus(answer, 200))["routes"];
    const found = (Array.isArray(routes) ? routes : []).find((each) => asObject("route", each)["route"] === route);
    return asObject("route", found)["offered"] === true;
  }

  async beat(which: "companion" | "display" = "companion"): Promise<SuiteAnswer> {
    const answer = expectStatus(await this.#enrolled(which).party.send("POST", "heartbeat/", { json: {} }), 200);
    if (which === "companion") this.#beatAtMs = performance.now();
    return answer;
  }

  /** Fetches the assignment of a collection. */
  async fetchAssignment(etag?: string): Promise<SuiteAnswer> {
    return this.companion.send("GET", "assignment/", etag === undefined ? {} : { headers: { "if-none-match": etag } });
  }

  report(intentId: number, outcome: string, more: object = {}): Promise<SuiteAnswer> {
    const json = { intent_id: intentId, outcome, client_idempotency_key: randomUUID(), ...more };
    return this.companion.send("POST", "assignment/report/", { json });
  }

  /** Waits until a request is answered with a status, and returns that answer. */
  async answered(status: number, waitMs: number, ask: () => Promise<SuiteAnswer>): Promise<SuiteAnswer> {
    let answer: SuiteAnswer | undefined;
    const read = async () => (answer = await ask()).status;
    await this.until("status of the answer", waitMs, read, (found) => found === status);
    return answer as SuiteAnswer;
  }

  /** Waits until a condition is true; throws `Mismatch` when the time is over. */
  async until<T>(what: string, waitMs: number, read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
    const deadlineMs = performance.now() + waitMs;
    for (;;) {
      const value = await read();
      if (isDone(value)) return value;
      if (performance.now() > deadlineMs) throw new Mismatch(what, `within ${waitMs / 1_000} s`, value);
      await delay(clientLimits.conformancePollMs, undefined, { signal: this.wire.signal });
    }
  }
}

/** The owner, with a log-in or with a session for the run, which may not be effective yet. */
export async function ownerOf(wire: Wire, owner: LogIn | OpenSession): Promise<Party> {
  if (!("token" in owner)) return logIn(wire, "backoffice", owner);
  const party = new Party(wire, "owner", "/api/backoffice/v1/", owner.token);
  const answer = await untilKnown(party, "session/", wire.signal);
  if (answer.status !== 200) throw new CannotRun(`The session of the owner is refused: ${shown(answer)}`);
  return party;
}

/** Waits until the service accepts a new session or credential, and returns the answer. */
export async function untilKnown(party: Party, path: string, signal: AbortSignal): Promise<SuiteAnswer> {
  const deadlineMs = performance.now() + clientLimits.conformanceEffectMs;
  for (;;) {
    const answer = await party.send("GET", path);
    if (answer.status !== 401 || performance.now() > deadlineMs) return answer;
    await delay(clientLimits.conformancePollMs, undefined, { signal });
  }
}

async function logIn(wire: Wire, api: "backoffice" | "cashier", details: LogIn): Promise<Party> {
  const root = `/api/${api}/v1/`;
  // The signal must not end this request: the service may have opened a session, and its token would be lost.
  const endless = { ...wire, signal: new AbortController().signal };
  const ask = () => new Party(endless, "anonymous", root).send("POST", "session/", { json: details });
  let answer = await ask();
  // The log-in is no check, so it is repeated: other runs and people log in at the same time.
  for (let tries = 1; answer.status === 503 && tries < clientLimits.conformanceLogInTries; tries += 1) {
    const waitMs = Number(answer.headers.get("retry-after") ?? "1") * 1_000;
    await delay(Math.min(waitMs, clientLimits.conformanceAnswerMs), undefined, { signal: wire.signal });
    answer = await ask();
  }
  const token = answer.status < 300 ? objectOf(answer)["token"] : undefined;
  if (typeof token !== "string") throw new CannotRun(`The log-in of ${details.email} was refused: ${shown(answer)}`);
  return new Party(wire, api === "cashier" ? "cashier" : "owner", root, token);
}

/**
 * Resets the sandbox: this removes the data of earlier runs, and makes new codes and a new password. With `keepsSettings`, the
 * next reset restores the settings that the devices have now.
 */
export async function resetSandbox(
  owner: Party,
  sandboxId: number,
  { keepsSettings }: { readonly keepsSettings: boolean },
): Promise<{ sandbox: FreshSandbox; currency: string }> {
  const json = { keeps_settings: keepsSettings };
  const answer = await owner.change("POST", `sandboxes/${sandboxId}/reset/`, { json });
  if (answer.status !== 200) throw new CannotRun(`Sandbox ${sandboxId} cannot be reset: ${shown(answer)}`);
  const body = objectOf(answer);
  const display = asObject("`display`", body["display"]);
  const companion = asObject("`companion`", body["companion"]);
  const cashier = asObject("`cashier`", body["cashier"]);
  return {
    currency: String(body["currency"]),
    sandbox: {
      sandboxId,
      resetAt: String(body["reset_at"]),
      stationId: Number(body["station_id"]),
      displayId: Number(display["device_id"]),
      displayCode: String(display["enrollment_code"]),
      companionId: Number(companion["device_id"]),
      companionCode: String(companion["enrollment_code"]),
      cashier: { email: String(cashier["email"]), password: String(cashier["password"]) },
    },
  };
}
