/** The gateway's own figures: how much its replica holds, and how far it may be believed. */
import { addGauge, type MetricsServer, type MetricsSettings, startMetrics } from "../services/runtime/metrics.ts";
import type { Gateway } from "./app.ts";

/** Throws UserError `metrics_port_taken`. */
export async function startGatewayMetrics(gateway: Gateway, settings: MetricsSettings): Promise<MetricsServer> {
  const metrics = await startMetrics("gateway", settings);
  const { replicas } = gateway;
  const { registry } = metrics;
  addGauge(registry, "gateway_replica_stations", "Stations in the replica.", () => replicas.stations.size);
  addGauge(
    registry,
    "gateway_replica_credentials",
    "Credentials in the replica.",
    () => replicas.credentials.table.size,
  );
  for (const name of ["stations", "credentials", "sessions"] as const) {
    const help = `Seconds since the replica of ${name} was last known to be complete.`;
    addGauge(
      registry,
      `gateway_replica_${name}_age_seconds`,
      help,
      () => replicas.feeds[name].ageMs(Date.now()) / 1_000,
    );
  }
  return metrics;
}
