/** A stored task keeps the id of its HTTP request, also when another process carries it out later. */
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { prepareIntent } from "../../services/bus/messages/intents.ts";
import { withdrawProviderPayment } from "../../services/bus/messages/provider-payments.ts";
import type { Transaction } from "../../services/db/pool.ts";
import { byOf } from "../../services/providers/attributions.ts";
import { startProvidersService } from "../../services/providers/service.ts";
import { startAttribution } from "../../services/providers/sql/issues.ts";
import { armNotice, takeAsPaid } from "../../services/providers/sql/tasks.ts";
import { currentRequestId, forRequest } from "../../services/runtime/log.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { waitFor } from "../support/wait-for.ts";
import { Scenes } from "./emvco-scene.ts";
import { type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const FINISHED = "an interrupted attribution is finished";

interface Line {
  readonly msg: string;
  readonly intentId?: number;
  readonly kind?: string;
  readonly requestId?: string;
}

/** Asks the provider for a payment, for this request or for none. Returns the id of the intent. */
async function collect(requestId: string | undefined): Promise<number> {
  const place = await world.openPlace();
  const configId = await world.addSandboxConfig(place);
  const intent = await world.openIntent(place, 1203);
  await forRequest(requestId, () => world.askProvider(place, configId, intent));
  return intent.intentId;
}

/** Stops the process, calls `meanwhile`, and returns the log lines of another process up to the last one. */
async function linesOfAnother(meanwhile: () => Promise<unknown>, isLast: (line: Line) => boolean): Promise<Line[]> {
  const lines: Line[] = [];
  const mixin = (): object => ({ requestId: currentRequestId() });
  const log = pino({ mixin }, { write: (line: string) => void lines.push(JSON.parse(line) as Line) });
  const { bus, environment, databaseUrl, natsUrl } = world;
  const settings = { natsUrl, databaseUrl, logLevel: "silent" } as const;
  await world.restartProviders(async () => {
    await meanwhile();
    const another = await startProvidersService({ bus, logs: ONE_LOG, log, settings, environment });
    await waitFor("the last line", () => lines.some(isLast));
    await another.stop();
  });
  return lines;
}

/** The log lines about the intent of another process that carries out the task, up to one about the `last` kind. */
async function carriedOut(intentId: number, kind: string, last = kind): Promise<readonly Line[]> {
  const makeDue = () => world.database`
    update provider_tasks set done_at = null, outcome = null, due_at = now()
    where intent_id = ${intentId} and kind = ${kind}`;
  const isOfTask = (line: Line): boolean => line.intentId === intentId;
  const lines = await linesOfAnother(makeDue, (line) => isOfTask(line) && line.kind === last);
  return lines.filter(isOfTask);
}

test("a poll that another process makes: its line has the id of the collection's request", async () => {
  const intentId = await collect("the collection");
  const lines = await carriedOut(intentId, "poll");
  for (const line of lines) expect(line).toMatchObject({ kind: "poll", requestId: "the collection" });
});

test("a payment that no request has asked for: the line of its poll has no request id", async () => {
  const intentId = await collect(undefined);
  const [line] = await carriedOut(intentId, "poll");
  expect(line).toMatchObject({ kind: "poll" });
  expect(line).not.toHaveProperty("requestId");
});

test("a cancellation that another process makes: its line and the line of the next task have its request's id", async () => {
  const intentId = await collect("the collection");
  await forRequest("the cancellation", () => world.ask(withdrawProviderPayment, { intentId }));
  await waitFor("the station's notice", () => world.stations.about(intentId).length > 0);
  await world.database`
    update provider_tasks set request_id = 'an earlier one' where intent_id = ${intentId} and kind = 'clear'`;
  const lines = await carriedOut(intentId, "withdraw", "clear");
  const idOf = (of: string) => lines.find(({ kind }) => kind === of)?.requestId;
  expect([idOf("withdraw"), idOf("clear")]).toEqual(["the cancellation", "the cancellation"]);
});

test("an attribution that another process finishes: the line has the id of the request that began it", async () => {
  const scene = await scenes.open();
  await scenes.pay(scene, { reference: "UNKNOWN" });
  const { issueId, providerReference: reference } = await scenes.onlyIssueOf(scene.place);
  const { stationId, operator } = scene.place;
  const { orderId, amountMinor, currency } = await world.openIntent(scene.place, 1250);
  const { intentId } = await world.ask(prepareIntent, { stationId, orderId });
  const attestationId = `issue:${issueId}:${intentId}`;
  const attested = { intentId, attestationId, stationId, orderId, amountMinor, currency, reference };
  const attribution = { ...attested, reason: "the receipt", by: byOf(operator) };
  const begin = () => world.database.begin((tx) => startAttribution(tx, issueId, attribution));
  const lines = await linesOfAnother(
    async () => {
      expect(await forRequest("the attribution", begin)).toBe(true);
      await world.database`
        update issues set attributed_since = now() - interval '1 hour' where issue_id = ${issueId}`;
    },
    ({ msg }) => msg === FINISHED,
  );
  expect(lines.find(({ msg }) => msg === FINISHED)).toMatchObject({
    issueId,
    status: "attributed",
    requestId: "the attribution",
  });
});

test.each([
  [
    "a confirmation",
    (tx: Transaction, intentId: number) => takeAsPaid(tx, { intentId, providerReference: "p", dueInMs: 0 }),
  ],
  [
    "a notice",
    (tx: Transaction, intentId: number) => armNotice(tx, { intentId, notice: {}, dueInMs: 60_000, atMost: 1 }),
  ],
])("%s: the task has the id of the provider's callback", async (_, store) => {
  const intentId = await collect("the collection");
  const rollback = new Error("The test only reads what it would store.");
  const stored = world.database.begin(async (tx) => {
    const task = await forRequest("the callback", () => store(tx, intentId));
    expect(task).toMatchObject({ intentId, requestId: "the callback" });
    throw rollback;
  });
  await expect(stored).rejects.toBe(rollback);
});
