/** What a process reports about its pools of connections to PostgreSQL. */
import type { Registry } from "prom-client";
import { addGauges } from "../runtime/metrics.ts";
import { openPools, type PoolFacts } from "./pool.ts";

export function addPoolMetrics(metrics: Registry | undefined): void {
  const add = (name: string, help: string, read: (pool: PoolFacts) => number): void =>
    addGauges(metrics, { name, help, labels: ["pool"] }, () => {
      const sums = new Map<string, number>();
      for (const pool of openPools()) sums.set(pool.name, (sums.get(pool.name) ?? 0) + read(pool));
      return [...sums].map(([pool, value]) => [{ pool }, value] as const);
    });
  add("database_connections", "Open connections to PostgreSQL, by pool.", (pool) => pool.connections);
  add("database_connections_limit", "The most connections of a pool.", (pool) => pool.maxConnections);
  add(
    "database_calls_in_flight",
    "Statements and transactions under way; those beyond the pool's connections wait.",
    (pool) => pool.calls,
  );
}
