/**
 * A separate process with the gateway's station replica. It reports when each marked commit became visible.
 * Times are on the system's clock with microseconds, which processes of one machine share.
 */

import { pino } from "pino";
import { ReplicaFeed } from "../../../gateway/read-model/replica-feed.ts";
import { StationReplica } from "../../../gateway/read-model/station-replica.ts";
import { connectBus } from "../../../services/bus/connection.ts";
import { StationLogs } from "../../../services/bus/streams.ts";
import { parseStationId } from "../../../services/bus/subjects.ts";

const log = pino({ level: "warn" });
const bus = await connectBus({ url: process.env["NATS_URL"] ?? "", name: "replica-probe", log });
const replica = new StationReplica(new StationLogs(1));
const seen: [number, number, number][] = [];
const [target] = replica.targets;
if (target === undefined) throw new Error("There is no station log.");
const feed = new ReplicaFeed(bus, log, {
  ...target,
  apply: (subject, data, storedAtMs) => {
    target.apply(subject, data, storedAtMs);
    // The stream is empty at the start and its messages come in order, each once: the count is the sequence.
    seen.push([parseStationId(subject), seen.length + 1, performance.timeOrigin + performance.now()]);
  },
});
await feed.loaded();
process.on("message", () => process.send?.({ seen }));
process.on("disconnect", () => process.exit(0));
process.send?.({ ready: true });
