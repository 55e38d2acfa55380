/**
 * A stalled process carries out a decision about a match late: another process has carried it out long ago. Decisions that
 * people have made since then stay.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Bus, connectBus } from "../../../services/bus/connection.ts";
import { confirmMatch, rejectMatch } from "../../../services/bus/messages/reconciliation-matches.ts";
import { call, type Serving, serve } from "../../../services/bus/operation.ts";
import { requestClaims } from "../../../services/db/request-claims.ts";
import * as matches from "../../../services/reconciliation/matches.ts";
import { createLog } from "../../../services/runtime/log.ts";
import { carryOut } from "../../support/carry-out-twice.ts";
import { startNats, type TestServer } from "../../support/servers.ts";
import { operator } from "../closings/closing-world.ts";
import { type RunDatabase, startRunDatabase } from "./run-world.ts";

let running: RunDatabase;
let nats: TestServer;
let bus: Bus;
let serving: readonly Serving[];
beforeAll(async () => {
  [running, nats] = await Promise.all([startRunDatabase(), startNats()]);
  const { database } = running;
  const log = createLog({ service: "test", level: "silent" });
  bus = await connectBus({ url: nats.url, name: "test", log });
  const responder = { nc: bus.nc, log, queue: "test", claim: requestClaims(database) };
  serving = [
    serve(responder, confirmMatch, (request) => matches.confirmMatch({ database }, request)),
    serve(responder, rejectMatch, (request) => matches.rejectMatch({ database }, request)),
  ];
});
afterAll(async () => {
  await Promise.all(serving.map((served) => served.drain()));
  await bus.close();
  await nats.stop();
  await running.stop();
});

const REASON = "Checked with the slip.";

/** A line with one candidate, and requests to confirm and to reject the pair. */
async function openPair() {
  const world = await running.openWorld();
  const paymentKey = await world.pay({ reference: "a", amountMinor: 1000 });
  await world.importLines(world.qrAccountId, [{ name: "wrong", amountMinor: 1000, providerReference: "wrong" }]);
  await world.run(world.qrAccountId);
  const [line] = await world.database<[{ line_id: number }]>`
    select line_id from statement_lines where account_id = ${world.qrAccountId}`;
  const caller = operator(world);
  const { line_id: lineId } = line;
  return {
    confirmation: { caller, lineIds: [lineId], paymentKeys: [paymentKey], reason: REASON },
    rejection: { caller, lineId, paymentKey, reason: REASON },
    run: async () => (await world.run(world.qrAccountId)).lines,
  };
}

test("a late confirmation, after the pair was rejected: it stays rejected", async () => {
  const { confirmation, rejection, run } = await openPair();
  const again = await carryOut(bus.nc, confirmMatch, confirmation);
  await call(bus.nc, rejectMatch, rejection);
  await again();
  expect(await run()).toEqual({ wrong: "unmatched_money" });
});

test("a late rejection, after the pair was confirmed: it stays confirmed", async () => {
  const { confirmation, rejection, run } = await openPair();
  const again = await carryOut(bus.nc, rejectMatch, rejection);
  await call(bus.nc, confirmMatch, confirmation);
  expect(await run()).toEqual({ wrong: "matched" });
  await again();
  expect(await run()).toEqual({ wrong: "matched" });
});
