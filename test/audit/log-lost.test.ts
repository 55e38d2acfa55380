/** The audit copy after nats-server has lost its newest data: it has the events of before and after the loss. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PaymentIntent } from "../../machines/payment-intent.ts";
import { confirmationId } from "../../machines/station/deadlines.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { listPayments } from "../../services/bus/messages/payments.ts";
import { createLog } from "../../services/runtime/log.ts";
import { findEndedIntent } from "../../services/settlement/intents.ts";
import { comeBackWith, copyData } from "../support/nats-data.ts";
import { type AuditWorld, committedEvents, copiedEvents, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot, type ScriptedStation } from "./scripted-station.ts";

let world: AuditWorld;
beforeEach(async () => {
  world = await startAuditWorld();
  await world.startAudit();
});
afterEach(() => world.stop());

async function lose(copy: string | undefined): Promise<void> {
  await comeBackWith(world.nats, copy);
  await expect.poll(() => world.bus.isUp()).toBe(true);
  await ensureStreams(world.bus, { replicas: 1, logs: 1 });
}

/** The same events with their versions in the copy, which are higher than those in the log by `ahead`. */
function withCopyVersions(events: readonly string[], ahead: number): string[] {
  return events.map((event) => {
    const [version = "", rest = ""] = event.split(/\.(.*)/s);
    return `${Number(version) + ahead}.${rest}`;
  });
}

const lostEvents = (station: ScriptedStation) => world.database`
  select version, data from station_events
  where station_id = ${station.facts.stationId} and type = 'log_lost' order by version`;

describe("a log that has lost its end", () => {
  test("the copy has the events before the loss, then log_lost with the lost versions, then later events", async () => {
    const [station, untouched] = [await world.openStation(), await world.openStation()];
    await station.collectCash(101);
    await untouched.collectCash(102);
    await world.untilCopied();
    const copy = copyData(world.nats);
    const kept = station.snapshot();
    await station.collectCash(103);
    await station.collectCash(104);
    await world.untilCopied();
    const beforeLoss = committedEvents(station);
    const versionLost = station.commits.length;

    await lose(copy);
    station.restore(kept);
    // These are more commits than were lost, so the stream is longer than before when the copier checks it.
    for (let intentId = 105; intentId < 109; intentId += 1) await station.collectCash(intentId);
    await world.untilCopied();

    const [lost] = await lostEvents(station);
    const keptVersion = kept.commits;
    expect(lost).toEqual({
      version: versionLost + 1,
      data: { fromVersion: keptVersion + 1, toVersion: versionLost },
    });
    const afterLoss = committedEvents(station).slice(committedEvents(station).length - 12);
    const ahead = versionLost + 1 - keptVersion;
    const expected = [...beforeLoss, `${versionLost + 1}.0 log_lost`, ...withCopyVersions(afterLoss, ahead)];
    await expect.poll(() => copiedEvents(world.database, station.facts.stationId)).toEqual(expected);
    expect(await copiedEvents(world.database, untouched.facts.stationId)).toEqual(committedEvents(untouched));
  });

  test("it loses its end twice and then all its data: the copy has all events", async () => {
    const station = await world.openStation();
    await station.collectCash(201);
    await world.untilCopied();
    const copy = copyData(world.nats);
    const kept = station.snapshot();
    const untilCopied = async (events: number): Promise<void> => {
      const copied = async () => (await copiedEvents(world.database, station.facts.stationId)).length;
      await expect.poll(copied).toBe(events);
    };
    for (const [round, intentId] of [202, 203].entries()) {
      await station.collectCash(intentId);
      await untilCopied(10 + 4 * round);
      await lose(copy);
      station.restore(kept);
    }
    await station.collectCash(204);
    await untilCopied(18);
    await lose(undefined);
    station.restore({ state: null, version: 0, sequence: 0, commits: 0 });
    await station.open();
    await untilCopied(23);
    const events = await copiedEvents(world.database, station.facts.stationId);
    const types = events.map((event) => event.slice(event.indexOf(" ") + 1));
    const collection = ["intent_created", "settlement_started", "intent_succeeded"];
    const opening = ["station_changed", "device_changed", "device_online", "lease_acquired"];
    const lostRound = [...collection, "log_lost"];
    expect(types).toEqual([...opening, ...collection, ...lostRound, ...lostRound, ...lostRound, ...opening]);
    expect(new Set(events).size).toBe(events.length);
    // The last loss took the first commits and all of the last round.
    expect((await lostEvents(station)).map(({ data }) => data)).toEqual([
      { fromVersion: 8, toVersion: 10 },
      { fromVersion: 12, toVersion: 14 },
      { fromVersion: 1, toVersion: 18 },
    ]);
  });

  test("its server was killed, and newer commits have replaced older ones: no loss", async () => {
    const station = await world.openStation();
    await station.collectCash(301);
    await world.untilCopied();
    const audit = await world.startAudit();
    await world.nats.kill9();
    await world.nats.restart();
    await expect.poll(() => world.bus.isUp()).toBe(true);
    for (let intentId = 302; intentId < 332; intentId += 1) await station.collectCash(intentId);
    await world.untilCopied();
    expect(await lostEvents(station)).toEqual([]);
    await audit.stop();
  });
});

/** The transaction of an intent, with its order. */
async function insertSale(
  { facts: { organizationId, stationId } }: ScriptedStation,
  sale: { readonly intentId: number; readonly route: string; readonly reference: string; readonly attestedBy: number },
): Promise<void> {
  const { intentId, route, reference, attestedBy } = sale;
  await world.database`
    with o as (
      insert into orders (organization_id, station_id, display_number, status, currency, total_minor, opened_by)
      values (${organizationId}, ${stationId}, ${intentId}, 'paid', 'EUR', 1250, 7) returning order_id
    )
    insert into transactions (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference, attested_by)
    select ${organizationId}, order_id, ${stationId}, ${intentId}, ${route}, 1250, 'EUR', ${reference}, ${attestedBy} from o`;
}

/** The ended intent as its station recalls it. */
async function recall({ facts: { stationId } }: ScriptedStation, intentId: number) {
  const deps = {
    database: world.database,
    bus: world.bus,
    log: createLog({ service: "settlement", level: "silent" }),
  };
  return (await findEndedIntent(deps, { stationId, intentId })).intent;
}

describe("an intent that only the lost commits had", () => {
  test("when its settlement was copied without an end, and it has a transaction: it is succeeded, for filters too", async () => {
    const station = await world.openStation();
    await world.untilCopied();
    const copy = copyData(world.nats);
    const kept = station.snapshot();
    await station.collect(403, orderSnapshot(403), "cash");
    await station.do({ type: "intent_attest", intentId: 403 }, station.cashier, "attest:403");
    await world.untilCopied();
    await insertSale(station, { intentId: 403, route: "cash", reference: "", attestedBy: 7 });

    await lose(copy);
    station.restore(kept);
    await station.companionSilence();
    await world.untilCopied();
    const { payments } = await world.ask(listPayments, { caller: world.ownerOf(station), status: "succeeded" });
    expect(payments.map(({ intentId, status }) => [intentId, status])).toEqual([[403, "succeeded"]]);
  });

  test("when its QR was copied and paid: it is succeeded, and the provider's confirmation finds it done", async () => {
    const station = await world.openStation();
    const provider = { kind: "provider", id: 81 } as const;
    const choice = { type: "provider_put", provider: { configId: 81, revision: 1 } } as const;
    await station.do(choice, { kind: "registry", id: 0 });
    await world.untilCopied();
    const copy = copyData(world.nats);
    const kept = station.snapshot();
    await station.collect(404, orderSnapshot(404), "dynamic_qr");
    const shown = { type: "qr_ready", intentId: 404, qrPayload: "QR", providerReference: "" } as const;
    await station.do(shown, provider);
    await world.untilCopied();
    await insertSale(station, { intentId: 404, route: "dynamic_qr", reference: "PAY-4", attestedBy: 0 });

    await lose(copy);
    station.restore(kept);
    await station.companionSilence();
    await world.untilCopied();
    const paid = (await recall(station, 404)) as unknown as PaymentIntent;
    expect(paid).toMatchObject({ status: "succeeded", provider: { qrPayload: "", providerReference: "PAY-4" } });
    const confirm = { type: "provider_confirm", intentId: 404, providerReference: "PAY-4" } as const;
    const reply = await station.do(confirm, provider, confirmationId(404), paid);
    expect(reply).toEqual({ ok: true, type: "intent", intentId: 404, status: "succeeded" });
  });

  test("when paid, it is succeeded; when not, it is expired, and its timeline has the loss", async () => {
    const station = await world.openStation();
    await world.untilCopied();
    const copy = copyData(world.nats);
    const kept = station.snapshot();
    await station.collect(401, orderSnapshot(401), "cash");
    await station.do({ type: "intent_attest", intentId: 401 }, station.cashier, "attest:401");
    await station.settled(401, 9);
    await station.collect(402, orderSnapshot(402));
    await world.untilCopied();
    // The station's state still has it as active, so it has no known end.
    await expect(recall(station, 402)).rejects.toMatchObject({ refusal: { code: "unavailable" } });

    await lose(copy);
    station.restore(kept);
    await station.companionSilence();
    await world.untilCopied();
    expect(await recall(station, 402)).toMatchObject({ status: "expired" });
    expect(await recall(station, 401)).toMatchObject({ status: "succeeded", attestation: { transactionId: 9 } });
    expect(await recall(station, 4_711)).toBeNull();
    const caller = world.ownerOf(station);
    const { payments } = await world.ask(listPayments, { caller });
    expect(payments.map(({ intentId, status: listed }) => [intentId, listed])).toEqual([
      [402, "expired"],
      [401, "succeeded"],
    ]);

    const { status, entries } = await world.timelineOf(station, 402);
    expect(status).toBe("expired");
    expect(entries.map(({ type }) => type)).toEqual(["intent_created", "log_lost"]);
    expect(entries.at(-1)?.sentence).toBe(
      "The station's log lost its commits 5 to 8 in a failure of the message bus; they are listed here, and the station continued without them.",
    );
  });
});
