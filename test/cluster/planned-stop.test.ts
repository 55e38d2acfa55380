/** A host that hands over a partition, while commands to it are on their way between two NATS servers. */
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { partitionOf } from "../../machines/partition.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import type { StationRequest, StationResponse } from "../../services/bus/messages/station-commands.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { createLog } from "../../services/runtime/log.ts";
import { LocalCommands, type Mailboxes } from "../../services/stations/mailboxes.ts";
import { Partition } from "../../services/stations/partition.ts";
import { StoredHeartbeats } from "../../services/stations/stored-heartbeats.ts";
import { QUIET } from "../support/quiet-log.ts";
import { NatsCluster, NODES } from "./nats-cluster.ts";

/** The delay in each direction between the caller's server and the others, so that some commands are always on their way. */
const DELAY_MS = 15;
const EVERY_MS = 1;
const BEFORE_AND_AFTER_MS = 100;
const STATION_ID = 1;
const REQUEST: StationRequest = {
  commandId: "test:1",
  actor: { kind: "cashier", id: 7, name: "Ana" },
  command: { type: "lease_acquire" },
};
const DONE: StationResponse = { reply: { ok: true, type: "accepted" }, intent: null, sequence: 5 };

/** A partition whose stations answer every command at once. */
function openPartition(bus: Bus): Partition {
  const mailboxes: Pick<Mailboxes, "submit"> = { submit: (_stationId, { answer }) => answer(DONE) };
  return new Partition(partitionOf(STATION_ID), {
    nc: bus.nc,
    clock: { nowMs: Date.now },
    log: createLog({ service: "test", level: "silent" }),
    mailboxes,
    localCommands: new LocalCommands(mailboxes),
    deviceSilenceMs: 25_000,
    storedHeartbeats: new StoredHeartbeats(bus),
    isCurrent: () => true,
  });
}

test("commands on their way to a host that hands over a partition: the next host answers them soon", async () => {
  const cluster = await NatsCluster.start();
  const [caller, first, next] = await Promise.all(
    NODES.map((node) => connectBus({ url: cluster.nodeUrl(node), name: "test", log: QUIET })),
  );
  if (caller === undefined || first === undefined || next === undefined) throw new Error("There are three servers.");
  try {
    const partition = openPartition(first);
    await first.nc.flush();
    cluster.slow("n0", DELAY_MS);
    await askStation(caller.nc, STATION_ID, REQUEST);
    const times: Promise<number>[] = [];
    const sending = setInterval(() => {
      const startedAtMs = performance.now();
      times.push(askStation(caller.nc, STATION_ID, REQUEST).then(() => performance.now() - startedAtMs));
    }, EVERY_MS);
    await delay(BEFORE_AND_AFTER_MS);
    await partition.drain();
    partition.close();
    const successor = openPartition(next);
    await delay(BEFORE_AND_AFTER_MS);
    clearInterval(sending);
    // Without the notice the caller waits for `askAgainMs` before it sends again.
    expect(Math.max(...(await Promise.all(times)))).toBeLessThan(BUS_LIMITS.askAgainMs);
    successor.close();
  } finally {
    cluster.reunite("n0");
    await Promise.all([caller, first, next].map((bus) => bus.close()));
    await cluster.stop();
  }
}, 30_000);
