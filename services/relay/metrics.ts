/** The metrics of the outbox and its deliveries. */
import type { Registry } from "prom-client";
import { OUTBOX_KINDS, type OutboxRow } from "../db/outbox.ts";
import { addCount, addGauge, type Count } from "../runtime/metrics.ts";
import type { Sample } from "../runtime/repeat.ts";
import type { PendingSummary } from "./sql/outbox.ts";

/** `refused`: the receiver refused the row for good. `failed`: the relay will deliver the row again. */
const DELIVERY_RESULTS = ["delivered", "refused", "failed"] as const;
type DeliveryResult = (typeof DELIVERY_RESULTS)[number];

export interface RelayMetrics {
  delivered(kind: OutboxRow["kind"], result: DeliveryResult): void;
  movedLeader(): void;
}

export function addRelayMetrics(
  registry: Registry | undefined,
  facts: {
    readonly isLeader: () => boolean;
    readonly missingStreams: () => number;
    readonly pending: Sample<PendingSummary>;
  },
): RelayMetrics {
  const deliveries: Count<"kind" | "result"> = addCount(registry, {
    name: "relay_deliveries_total",
    help: "Attempts to deliver an outbox row, by kind and result.",
    labels: { kind: OUTBOX_KINDS, result: DELIVERY_RESULTS },
  });
  addGauge(registry, "relay_is_leader", "1 while this relay is the one that delivers.", () => Number(facts.isLeader()));
  addGauge(
    registry,
    "relay_streams_missing",
    "Streams and buckets that the bus lacks; only `migrate` makes them.",
    () => facts.missingStreams(),
  );
  const read = async (of: (known: PendingSummary) => number): Promise<number> => {
    const known = await facts.pending();
    return known === undefined ? Number.NaN : of(known);
  };
  addGauge(registry, "relay_outbox_pending_rows", "Outbox rows not delivered yet, counted to 10,000.", () =>
    read((pending) => pending.rows),
  );
  addGauge(registry, "relay_outbox_oldest_age_seconds", "Age of the oldest of those rows.", () =>
    read((pending) => pending.oldestAgeMs / 1_000),
  );
  const moves = addCount(registry, {
    name: "relay_leader_moves_total",
    help: "How often this relay has moved the leader of a stream, so that leaders are spread, or because servers are cut off.",
  });
  return { delivered: (kind, result) => deliveries.add({ kind, result }), movedLeader: () => moves.add({}) };
}
