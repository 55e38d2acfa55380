/**
 * A separate process that reports what the displays of all stations show. It runs the gateway's station replica and makes,
 * at each commit, the view that `GET display` answers with. It reads the clock after it has made the view.
 */

import { pino } from "pino";
import { ReplicaFeed } from "../../../gateway/read-model/replica-feed.ts";
import { StationReplica } from "../../../gateway/read-model/station-replica.ts";
import { displayView } from "../../../machines/views/display.ts";
import { connectBus } from "../../../services/bus/connection.ts";
import { StationLogs } from "../../../services/bus/streams.ts";
import { clockMs } from "./clock.ts";

/** What a display shows since `atMs`. */
export interface ShownDisplay {
  readonly stationId: number;
  readonly state: "qr" | "paid";
  readonly orderDisplayNumber: number;
  readonly amount: string;
  readonly qrPayload: string;
  readonly atMs: number;
}

const log = pino({ level: "warn" });
const bus = await connectBus({ url: process.env["NATS_URL"] ?? "", name: "display-probe", log });
const replica = new StationReplica(new StationLogs(1));
/** The last report about each station. */
const reported = new Map<number, string>();
replica.onChange((stationId) => {
  const state = replica.state(stationId);
  if (state === undefined) return;
  const { view } = displayView(state, Date.now(), true);
  const atMs = clockMs();
  const shown = `${view.state} ${view.order_display_number}`;
  if ((view.state !== "qr" && view.state !== "paid") || reported.get(stationId) === shown) return;
  reported.set(stationId, shown);
  const { order_display_number: orderDisplayNumber, amount, qr_payload: qrPayload } = view;
  process.send?.({ stationId, state: view.state, orderDisplayNumber, amount, qrPayload, atMs } satisfies ShownDisplay);
});
const [target] = replica.targets;
if (target === undefined) throw new Error("There is no station log.");
const feed = new ReplicaFeed(bus, log, target);
await feed.loaded();
process.on("disconnect", () => process.exit(0));
process.send?.({ ready: true });
