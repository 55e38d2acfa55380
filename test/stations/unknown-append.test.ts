/** A station with a commit of unknown outcome: it may be stored or not. */
import { headers } from "nats";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { decodeCommit, encodeCommit } from "../../machines/station/commit.ts";
import { deadlineHeaders } from "../../services/bus/deadline.ts";
import { prepareIntent } from "../../services/bus/messages/intents.ts";
import type {
  RequestedCommand,
  StationFailure,
  StationResponse,
} from "../../services/bus/messages/station-commands.ts";
import { serve } from "../../services/bus/operation.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { stationCommandSubject } from "../../services/bus/subjects.ts";
import { currentRequestId, forRequest } from "../../services/runtime/log.ts";
import type { Service } from "../../services/runtime/service.ts";
import { stationLogSubject } from "../support/one-log.ts";
import { eventually } from "../support/wait-for.ts";
import { startScriptedProviders } from "./scripted-providers.ts";
import { CASHIER, type RunningHost, type StationWorld, startStationWorld } from "./station-world.ts";

let world: StationWorld;
let stationId: number;
let settlement: Service;
beforeAll(async () => {
  world = await startStationWorld({ money: true });
  settlement = await world.startSettlement();
  await world.startAudit();
});
afterEach(() => world.stopHosts());
afterAll(() => world.stop());

/** Sends one request, which no client repeats. */
async function askOnce(
  command: RequestedCommand,
  commandId: string,
  timeoutMs = 15_000,
): Promise<StationResponse | StationFailure> {
  const request = JSON.stringify({ commandId, actor: CASHIER, command });
  const options = { timeout: timeoutMs, headers: deadlineHeaders(world.bus.nc, timeoutMs) };
  const answer = await world.bus.nc.request(stationCommandSubject(stationId), request, options);
  return answer.json<StationResponse | StationFailure>();
}
const UNKNOWN = { failure: "unavailable" };

/** A commit that the host tried to append and that has not reached the server. */
interface Held {
  readonly commandId: string;
  /** Stores the commit. Resolves with the server's answer. */
  readonly deliver: () => Promise<unknown>;
}

/**
 * Holds the host's appends: each fails with unknown outcome, at once or, with `isSilent`, at its timeout. All other messages
 * of the host pass.
 */
function holdAppends(
  { bus: { nc } }: RunningHost,
  { isSilent = false } = {},
): { readonly held: readonly Held[]; readonly letPass: () => void } {
  const held: Held[] = [];
  const publish = nc.publish.bind(nc);
  nc.publish = (subject, payload, options) => {
    if (!subject.startsWith("station.log.")) return publish(subject, payload, options);
    const body = String(payload);
    const conditions = headers();
    for (const [name, values] of options?.headers ?? []) for (const value of values) conditions.append(name, value);
    held.push({
      commandId: decodeCommit(body).commandId,
      deliver: async () => (await world.bus.nc.request(subject, body, { headers: conditions, timeout: 15_000 })).json(),
    });
    if (isSilent) return;
    throw new Error("The append may be stored or not.");
  };
  return { held, letPass: () => (nc.publish = publish) };
}

/** Ends the wait after a scan in which a host also finds late commits of the previous host. */
const endScan = ({ scanBus }: RunningHost): Promise<void> => scanBus.close();

const typesAfter = async (sequence: number): Promise<string[]> =>
  (await world.commits(stationId))
    .filter((commit) => commit.sequence > sequence)
    .flatMap((commit) => commit.events.map(({ type }) => type));

const openCash = async (): Promise<{ readonly orderId: number; readonly intentId: number }> => {
  const orderId = await world.openOrder(stationId);
  const { intent } = await world.ask(stationId, { type: "intent_create", route: "cash", orderId });
  return { orderId, intentId: intent?.intentId ?? 0 };
};
const isPaid = async (orderId: number): Promise<boolean> => {
  const [order] = await world.database()<{ status: string }[]>`select status from orders where order_id = ${orderId}`;
  return order?.status === "paid";
};

describe("an append whose outcome cannot be read back", () => {
  it("is stored, and the connection breaks before the answer: settlement starts when the bus is back", async () => {
    const running = await world.startHostBehindProxy();
    const { proxy, host } = running;
    stationId = await world.openStation();
    await endScan(running);
    const { orderId, intentId } = await openCash();
    const restore = proxy.cutAtNext(`"stream":"STATION_LOG_0"`);
    // The answer to this request is lost with the connection.
    const asked = askOnce({ type: "intent_attest", intentId }, "attest:1", 3_000).catch(() => undefined);
    await eventually(() => host.stationsWithUnknownAppend() === 1);
    expect((await world.newest(stationId)).state.intent?.status).toBe("settling");
    restore();
    // No request follows. Without the check of the append, settlement would start only at the deadline in three minutes.
    await eventually(() => isPaid(orderId));
    await eventually(() => host.stationsWithUnknownAppend() === 0);
    await asked;
  });

  it("is stored late: settlement starts then, and until then the station answers unavailable", async () => {
    const running = await world.startHost();
    stationId = await world.openStation();
    await endScan(running);
    const { orderId, intentId } = await openCash();
    const { held, letPass } = holdAppends(running);
    expect(await askOnce({ type: "intent_attest", intentId }, "attest:1")).toMatchObject(UNKNOWN);
    await eventually(() => held.some(({ commandId }) => commandId === "rule_out:attest:1"));
    // The host must not refuse, because it does not know whether the attestation is stored.
    expect(await askOnce({ type: "intent_cancel", intentId }, "cancel:1")).toMatchObject(UNKNOWN);
    expect(await held.find(({ commandId }) => commandId === "attest:1")?.deliver()).toMatchObject({
      seq: expect.any(Number),
    });
    letPass();
    await eventually(() => isPaid(orderId));
    expect(await typesAfter(0)).not.toContain("command_ruled_out");
    expect(
      (await world.ask(stationId, { type: "intent_attest", intentId }, { commandId: "attest:1" })).reply,
    ).toMatchObject({ status: "succeeded" });
  });

  it("is not stored: the host rules it out, answers again, and the log refuses it when it comes late", async () => {
    const running = await world.startHost();
    stationId = await world.openStation();
    await endScan(running);
    const { orderId, intentId } = await openCash();
    const { sequence } = await world.newest(stationId);
    const { held, letPass } = holdAppends(running);
    expect(await askOnce({ type: "intent_attest", intentId }, "attest:1")).toMatchObject(UNKNOWN);
    letPass();
    await eventually(() => running.host.stationsWithUnknownAppend() === 0);
    expect(await typesAfter(sequence)).toEqual(["command_ruled_out"]);
    expect(await held[0]?.deliver()).toMatchObject({ error: { err_code: 10071 } });
    expect(await isPaid(orderId)).toBe(false);
    expect((await world.ask(stationId, { type: "intent_cancel", intentId })).reply).toMatchObject({
      status: "cancelled",
    });
  });

  it("is unknown and then known: each log line about it has the id of its request", async () => {
    const lines: { msg: string; requestId?: string }[] = [];
    const mixin = (): object => ({ requestId: currentRequestId() });
    const log = pino({ mixin }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const running = await world.startHost({ log });
    stationId = await world.openStation();
    await endScan(running);
    const { intentId } = await openCash();
    const { held, letPass } = holdAppends(running);
    const attest = () => askOnce({ type: "intent_attest", intentId }, "attest:1");
    expect(await forRequest("the attestation", attest)).toMatchObject(UNKNOWN);
    // The first attempt to rule the append out has failed. Another one follows after a pause.
    await eventually(() => held.some(({ commandId }) => commandId === "rule_out:attest:1"));
    letPass();
    await eventually(() => running.host.stationsWithUnknownAppend() === 0);
    const ofAppend = lines.filter(({ msg }) => msg.startsWith("the outcome of an append"));
    expect(ofAppend.map(({ msg, requestId }) => [msg, requestId])).toEqual([
      ["the outcome of an append is unknown; the station waits for it", "the attestation"],
      ["the outcome of an append is known", "the attestation"],
    ]);
  });

  it("is stored, its answer has left the state, and settlement is busy: unavailable, because it has taken effect", async () => {
    await settlement.stop();
    const bus = await world.connect("settlement");
    let questions = 0;
    serve(
      { nc: bus.nc, log: { warn: () => undefined, error: () => undefined }, queue: "settlement" },
      prepareIntent,
      async ({ orderId }) => {
        questions += 1;
        if (questions > 1) throw new RefusedError({ code: "busy", retryAfterMs: 1_000 });
        return {
          intentId: 4_711,
          ended: null,
          order: {
            orderId,
            orderDisplayNumber: 1,
            amountMinor: "1250",
            currency: "EUR",
            status: "open" as const,
            revision: 1,
          },
        };
      },
    );
    const running = await world.startHost();
    stationId = await world.openStation();
    await endScan(running);
    const { held, letPass } = holdAppends(running, { isSilent: true });
    await bus.nc.flush();
    const asked = askOnce({ type: "intent_create", route: "cash", orderId: 12 }, "create:7:12");
    await eventually(() => held.length === 1);
    await held[0]?.deliver();
    letPass();
    const stored = await world.newest(stationId);
    const newer = {
      ...stored,
      version: stored.version + 1,
      commandId: "other:1",
      events: [],
      state: { ...stored.state, replies: [] },
    };
    await world.bus.nc.request(stationLogSubject(stationId), encodeCommit(newer));
    expect(await asked).toMatchObject(UNKNOWN);
    expect(questions).toBe(2);
    await bus.close();
    settlement = await world.startSettlement();
  });

  it("is a collection by QR that is stored late: the host then asks the provider", async () => {
    const providers = await startScriptedProviders(world);
    const running = await world.startHost();
    stationId = await world.openQrStation();
    await endScan(running);
    const orderId = await world.openOrder(stationId);
    const { held, letPass } = holdAppends(running);
    expect(await askOnce({ type: "intent_create", route: "dynamic_qr", orderId }, "create:1")).toMatchObject(UNKNOWN);
    await held[0]?.deliver();
    letPass();
    await eventually(() => providers.questions.length === 1);
    await providers.stop();
  });

  it("is a lease that is stored late: it lapses at its deadline, although no request comes", async () => {
    const running = await world.startHost();
    stationId = await world.openStation({ lease: false });
    await endScan(running);
    const { held, letPass } = holdAppends(running);
    expect(await askOnce({ type: "lease_acquire", lifetimeMs: 1_000 }, "lease:1")).toMatchObject(UNKNOWN);
    await held[0]?.deliver();
    letPass();
    await eventually(async () => (await typesAfter(0)).includes("lease_lapsed"));
  });
});
