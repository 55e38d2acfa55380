/** An answer counts only when it is about the requested payment: over HTTP, from a provider whose answers a test sets. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AskedPayment, ProviderAdapter } from "../../services/providers/adapters/adapter.ts";
import { createHttpClient, type HttpClient } from "../../services/providers/adapters/http-client.ts";
import { sandboxAdapter } from "../../services/providers/adapters/sandbox.ts";
import { addProviderMetrics } from "../../services/providers/metrics.ts";

const ACCESS = { settings: { account: "A-1" }, secrets: { api_key: ["key"] } };
const ASKED: AskedPayment = {
  reference: "OURS",
  amountMinor: "1250",
  currency: "EUR",
  orderDisplayNumber: 1,
  expiresAtMs: Date.now() + 60_000,
  callbackUrl: "http://127.0.0.1/",
  providerReference: "P-1",
};
const RIGHT = {
  payment_id: "P-1",
  reference: "OURS",
  account: "A-1",
  amount: "12.50",
  currency: "EUR",
  status: "pending",
  qr_payload: "https://pay.example/P-1",
};

let answer: object = RIGHT;
let server: Server;
let http: HttpClient;
let adapter: ProviderAdapter;
beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  http = createHttpClient(addProviderMetrics(undefined));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  adapter = sandboxAdapter(http, { url, installationKey: undefined });
});
afterAll(async () => {
  await http.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const signal = (): AbortSignal => AbortSignal.timeout(5_000);
const create = () => adapter.createPayment(ACCESS, { ...ASKED, providerReference: "" }, signal());
const failureOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    (value) => value,
    (error: unknown) => (error as { failure?: unknown }).failure,
  );

describe("the answer to a payment request", () => {
  test("the requested payment is accepted", async () => {
    answer = { ...RIGHT, amount: "12.5" };
    expect(await create()).toEqual({ qrPayload: RIGHT.qr_payload, providerReference: "P-1" });
  });

  test.each([
    { reference: "OTHER" },
    { account: "A-2" },
    { amount: "12.51" },
    { amount: "1250" },
    { currency: "USD" },
    { currency: "eur" },
    { qr_payload: "https://pay.example/\u202EP-1" },
    { qr_payload: "https://pay.example/\nP-1" },
    { qr_payload: "https://pay.example/\u0000" },
    { qr_payload: "https://pay.example/\u200B" },
  ])("an answer with %o is refused", async (wrong) => {
    answer = { ...RIGHT, ...wrong };
    expect(await failureOf(create())).toBe("provider_answer_invalid");
  });
});

describe("the answer to a status question", () => {
  const lookUp = () => failureOf(adapter.lookUp(ACCESS, ASKED, signal()));
  const cancel = () => failureOf(adapter.cancel(ACCESS, ASKED, signal()));

  test("this payment's status is accepted", async () => {
    answer = { ...RIGHT, status: "cancelled" };
    expect(await lookUp()).toEqual({ status: "ended", reason: "buyer_cancelled" });
    expect(await cancel()).toEqual({ status: "cancelled" });
  });

  test.each(["cancelled", "declined", "expired", "pending", "unknown"])(
    "the status %s of another payment: refused",
    async (status) => {
      for (const other of [{ reference: "OTHER" }, { payment_id: "P-2" }]) {
        answer = { ...RIGHT, ...other, status };
        expect(await lookUp()).toBe("provider_answer_invalid");
        expect(await cancel()).toBe("provider_answer_invalid");
      }
    },
  );

  test("references with other code points of the same letters are the same payment", async () => {
    answer = { ...RIGHT, payment_id: "Caf\u00E9-1" };
    const { providerReference } = await adapter.createPayment(ACCESS, { ...ASKED, providerReference: "" }, signal());
    answer = { ...RIGHT, payment_id: "Cafe\u0301-1 ", status: "cancelled" };
    const later = { ...ASKED, providerReference };
    expect(await adapter.cancel(ACCESS, later, signal())).toEqual({ status: "cancelled" });
    answer = { ...answer, reference: "OTHER", status: "paid" };
    expect(await adapter.lookUp(ACCESS, later, signal())).toMatchObject({ money: { providerReference } });
    answer = { ...RIGHT, payment_id: "Cafe\u0301-1 " };
    expect(await create()).toMatchObject({ providerReference });
  });

  test("a paid answer with one of the two known references is accepted, and one with neither is not", async () => {
    for (const other of [{ reference: "OTHER" }, { payment_id: "P-2" }, { account: "A-2" }, { amount: "13.00" }]) {
      answer = { ...RIGHT, ...other, status: "paid" };
      for (const ask of [lookUp, cancel]) {
        const money = { ...RIGHT, ...other };
        expect(await ask()).toMatchObject({
          status: "paid",
          money: { reference: money.reference, providerReference: money.payment_id, account: money.account },
        });
      }
    }
    answer = { ...RIGHT, reference: "OTHER", payment_id: "P-2", status: "paid" };
    expect(await lookUp()).toBe("provider_answer_invalid");
    expect(await cancel()).toBe("provider_answer_invalid");
  });
});
