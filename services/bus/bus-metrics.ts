/** What a process reports about its connection to the bus. */
import type { Registry } from "prom-client";
import { addCount, addGauge } from "../runtime/metrics.ts";
import type { Bus } from "./connection.ts";

export function addBusMetrics(metrics: Registry | undefined, bus: Bus): void {
  addGauge(metrics, "bus_up", "1 while the bus can be used.", () => Number(bus.isUp()));
  const losses = addCount(metrics, { name: "bus_losses_total", help: "How often the bus could not be used any more." });
  bus.onChange((isUp) => {
    if (!isUp) losses.add({});
  });
}
