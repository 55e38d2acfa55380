/** A slip settles one order. It settles a second order only when the cashier confirms that the reference was used before. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { prepareIntent, settleIntent } from "../../services/bus/messages/intents.ts";
import { openOrder } from "../../services/bus/messages/orders.ts";
import type { RequestOf } from "../../services/bus/operation.ts";
import { type SettlementWorld, startSettlementWorld } from "./settlement-world.ts";

type Settle = RequestOf<typeof settleIntent>;
type Place = Awaited<ReturnType<SettlementWorld["openStation"]>>;

let world: SettlementWorld;
let attestations = 0;
beforeAll(async () => {
  world = await startSettlementWorld();
});
afterAll(() => world.stop());

/** The actor host's request for a new order and intent at this station. */
async function attested({ stationId, cashier }: Place, reference: string, more: Partial<Settle> = {}): Promise<Settle> {
  const lines = [{ name: "Dinner", quantity: 1, unitAmountMinor: "1250" }];
  const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines });
  const { orderId } = order;
  const { intentId } = await world.ask(prepareIntent, { stationId, orderId });
  const attestationId = `attest:${(attestations += 1)}`;
  const money = { amountMinor: "1250", currency: "EUR" };
  const route = "attested_terminal" as const;
  return { intentId, attestationId, stationId, orderId, route, ...money, reference, attestedBy: 7, ...more };
}
const ask = (request: Settle) => world.ask(settleIntent, request);
const settled = { settled: true, transactionId: expect.any(Number) };
const warned = { settled: false, code: "reference_already_used" };
const confirmed = (request: Settle): Settle => ({
  ...request,
  attestationId: `${request.attestationId}:confirmed`,
  confirmsReferenceAlreadyUsed: true,
});

describe("a reference that has settled an order", () => {
  test("a second order: not settled, with a warning that names the earlier order; a confirmation settles it", async () => {
    const place = await world.openStation();
    const first = await attested(place, "RRN-204957319001");
    const before = Date.now();
    expect(await ask(first)).toEqual(settled);
    const second = await attested(place, "RRN-204957319001");
    const warning = await ask(second);
    expect(warning).toEqual({
      ...warned,
      earlier: {
        orderId: first.orderId,
        orderDisplayNumber: 1,
        stationName: "Counter",
        amountMinor: "1250",
        currency: "EUR",
        settledAtMs: expect.any(Number),
      },
    });
    if (warning.settled) expect.unreachable();
    expect(Math.abs((warning.earlier?.settledAtMs ?? 0) - before)).toBeLessThan(60_000);
    const none = await world.database`select from transactions where order_id = ${second.orderId}`;
    expect(none).toHaveLength(0);
    expect(await ask(confirmed(second))).toEqual(settled);
  });

  test("the same attestation again: the same answer, settled or warned", async () => {
    const place = await world.openStation();
    const first = await attested(place, "RRN-204957319002");
    const answer = await ask(first);
    expect([await ask(first), await ask(confirmed(first))]).toEqual([answer, answer]);
    const second = await attested(place, "RRN-204957319002");
    const warning = await ask(second);
    expect(warning).toMatchObject(warned);
    // A third order has used the reference since then. The repeated request still gets its first answer.
    expect(await ask(confirmed(await attested(place, "RRN-204957319002")))).toEqual(settled);
    expect(await ask(second)).toEqual(warning);
  });

  test("64 orders at once at two stations of one filial: one settles, the others are warned", async () => {
    const place = await world.openStation();
    const other = { ...place, stationId: await secondStation(place) };
    const requests = await Promise.all(
      Array.from({ length: 64 }, (_, turn) => attested(turn % 2 === 0 ? place : other, "RRN-204957319003")),
    );
    const answers = await Promise.all(requests.map(ask));
    expect(answers.filter((answer) => answer.settled)).toHaveLength(1);
    expect(answers.filter((answer) => !answer.settled && answer.code === "reference_already_used")).toHaveLength(63);
  });

  test("a confirmed and an unconfirmed attestation at once: the confirmed one settles, the other is warned", async () => {
    const place = await world.openStation();
    await ask(await attested(place, "RRN-204957319004"));
    const [sure, unsure] = await Promise.all([
      attested(place, "RRN-204957319004").then(confirmed),
      attested(place, "RRN-204957319004"),
    ]);
    expect(await Promise.all([ask(sure), ask(unsure)])).toMatchObject([settled, warned]);
  });

  test("another spelling: the same reference, so a warning", async () => {
    const place = await world.openStation();
    const route = "smart_pos" as const;
    expect(await ask(await attested(place, "Rrn 2049-5731", { route }))).toEqual(settled);
    for (const same of ["rrn 2049-5731", " RRN2049-5731 ", "ＲＲＮ 2049-5731"])
      expect(await ask(await attested(place, same)), same).toMatchObject(warned);
    expect(await ask(await attested(place, "RRN 2049-5732"))).toEqual(settled);
  });

  test("cash, an empty reference and another filial: no warning", async () => {
    const place = await world.openStation();
    const route = "cash" as const;
    for (let turn = 0; turn < 2; turn += 1) {
      expect(await ask(await attested(place, "RECEIPT-000001", { route }))).toEqual(settled);
      expect(await ask(await attested(place, "", { route: "smart_pos" }))).toEqual(settled);
      expect(await ask(await attested(await world.openStation(), "RRN-204957319005"))).toEqual(settled);
    }
  });

  test("for an order whose amount has changed: the answer is order_changed, without a warning", async () => {
    const place = await world.openStation();
    await ask(await attested(place, "RRN-204957319006"));
    const stale = await attested(place, "RRN-204957319006", { amountMinor: "1300" });
    expect(await ask(stale)).toEqual({ settled: false, code: "order_changed" });
  });

  test("one that PostgreSQL cannot store verbatim, or a very long one: a warning as for any other", async () => {
    const place = await world.openStation();
    for (const reference of ["RRN\u0000-1234567", "RRN-\uD800-1234567", `RRN-${"9".repeat(16_000)}`]) {
      expect(await ask(await attested(place, reference))).toEqual(settled);
      expect(await ask(await attested(place, reference))).toMatchObject(warned);
    }
  });
});

describe("the age of a used reference", () => {
  test("one of six characters, which terminals use again: a warning 19 hours later, and none after 21 hours", async () => {
    const place = await world.openStation();
    expect(await ask(await attested(place, "000042"))).toEqual(settled);
    expect(await ask(await attested(place, "000042"))).toMatchObject(warned);
    await ageBy(place, "19 hours");
    expect(await ask(await attested(place, "000042"))).toMatchObject(warned);
    await ageBy(place, "2 hours");
    expect(await ask(await attested(place, "000042"))).toEqual(settled);
  });

  test("one of seven characters: a warning also 31 days later", async () => {
    const place = await world.openStation();
    expect(await ask(await attested(place, "2049573"))).toEqual(settled);
    await ageBy(place, "31 days");
    expect(await ask(await attested(place, "2049573"))).toMatchObject(warned);
  });
});

async function secondStation({ stationId }: Place): Promise<number> {
  const [row] = await world.database<{ station_id: number }[]>`
    insert into stations (organization_id, filial_id, name, currency)
    select organization_id, filial_id, 'Bar', currency from stations where station_id = ${stationId} returning station_id`;
  return row?.station_id ?? 0;
}

/** Makes used references older. A trigger protects these rows, so the test disables it for a moment. */
async function ageBy({ stationId }: Place, interval: string): Promise<void> {
  await world.database.begin(async (sql) => {
    await sql`alter table settled_references disable trigger settled_references_append_only`;
    await sql`
      update settled_references set settled_at = settled_at - ${interval}::interval
      where transaction_id in (select transaction_id from transactions where station_id = ${stationId})`;
    await sql`alter table settled_references enable trigger settled_references_append_only`;
  });
}
