/**
 * The panel acts as the sandbox's cashier, because an owner cannot collect. The session is a bearer token in this page's memory.
 * Requests send no cookie and store none, so the owner stays signed in.
 */
import { newKey, type Result } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import type { ErrorBody, ReplyOf } from "../../shared/operations.ts";

interface CashierAccess {
  readonly email: string;
  readonly password: string;
  readonly stationId: number;
}

export type Sandbox = ReplyOf<"GET /api/backoffice/v1/sandboxes/">["sandboxes"][number];
export type Intent = ReplyOf<"GET /api/cashier/v1/stations/{station_id}/intents/{intent_id}/">;

/** The same deadline as in `shared/call.ts`. */
const DEADLINE_MS = 15_000;

async function send<T>(method: string, path: string, token: string | null, body?: unknown): Promise<Result<T>> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), DEADLINE_MS);
  try {
    const answer = await fetch(`/api/cashier/v1/${path}`, {
      method,
      credentials: "omit",
      cache: "no-store",
      signal: controller.signal,
      headers: {
        "Content-Type": "application/json",
        ...(token === null ? {} : { Authorization: `Bearer ${token}`, "Idempotency-Key": newKey() }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const json = (await answer.json()) as T;
    if (answer.ok) return { ok: true, reply: json };
    return { ...(json as ErrorBody), ok: false, httpStatus: answer.status, retryAfterMs: null };
  } catch {
    return { ok: false, code: "no_answer", detail: "", httpStatus: 0, retryAfterMs: null };
  } finally {
    clearTimeout(timer);
  }
}

const NO_SESSION: Failure = { ok: false, code: "session_missing", detail: "", httpStatus: 401, retryAfterMs: null };

export class SandboxCashier {
  readonly #access: CashierAccess;
  #token: string | null = null;

  constructor(access: CashierAccess) {
    this.#access = access;
  }

  get #station(): string {
    return `stations/${this.#access.stationId}`;
  }

  async #signedIn(): Promise<Failure | null> {
    if (this.#token !== null) return null;
    const { email, password } = this.#access;
    const session = await send<{ readonly token: string }>("POST", "session/", null, { email, password });
    if (!session.ok) return session;
    this.#token = session.reply.token;
    return null;
  }

  /** A session that has ended refuses a request before it does anything. Then this signs in again and repeats the request. */
  async #send<T>(method: string, path: string, body?: unknown): Promise<Result<T>> {
    const refused = await this.#signedIn();
    if (refused !== null) return refused;
    const result = await send<T>(method, `${this.#station}/${path}`, this.#token, body);
    if (result.ok || result.httpStatus !== 401) return result;
    this.#token = null;
    return (await this.#signedIn()) ?? (await send<T>(method, `${this.#station}/${path}`, this.#token, body));
  }

  /** Takes the station, opens an order of this amount and shows its QR code. */
  async collect(amount: string, name: string): Promise<Result<Intent>> {
    const lease = await this.#send("POST", "lease/", {});
    if (!lease.ok) return lease;
    const lines = [{ name, quantity: 1, unit_amount: amount }];
    const order = await this.#send<{ readonly order_id: number }>("POST", "orders/", { lines });
    if (!order.ok) return order;
    return await this.#send<Intent>("POST", "intents/", { order_id: order.reply.order_id, route: "dynamic_qr" });
  }

  /** The panel reads each second. Without a session it does not sign in: repeated wrong passwords block the address. */
  async read(intentId: number): Promise<Result<Intent>> {
    return this.#token === null ? NO_SESSION : await this.#send<Intent>("GET", `intents/${intentId}/`);
  }

  /** A session that has ended has released the station. */
  async cancel(intentId: number): Promise<Result<Intent>> {
    const lease = await this.#send("POST", "lease/", {});
    return lease.ok ? await this.#send<Intent>("POST", `intents/${intentId}/cancel/`, {}) : lease;
  }
}
