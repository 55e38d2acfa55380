/** The metrics of an actor host. */

import type { Registry } from "prom-client";
import type { StationCommandType } from "../../machines/station/command.ts";
import { STATION_COMMAND_TYPES } from "../../machines/station/finality.ts";
import { REFUSAL_CODES, SETTLEMENT_REFUSALS } from "../../machines/station/reply.ts";
import type { StationFailure } from "../bus/messages/station-commands.ts";
import {
  addCount,
  addDuration,
  addGauge,
  addGauges,
  addReadCount,
  type Count,
  type Duration,
} from "../runtime/metrics.ts";
import { isFailure, type StationAnswer, type Work } from "./work.ts";

/** Each type of work. */
const TYPES = [...STATION_COMMAND_TYPES, "liveness"];
const FAILURES = ["busy", "storage_low", "unavailable", "invalid_request"] satisfies StationFailure["failure"][];

export interface HostMetrics {
  readonly commands: Count<"type" | "result">;
  readonly commandSeconds: Duration<"type">;
  readonly lateEvidenceLeftOut: Count<never>;
  readonly conflicts: Count<never>;
  readonly unknownAppends: Count<never>;
  readonly confirmations: Count<"result">;
  readonly settlements: Count<"result">;
  readonly settlementRetries: Count<never>;
}

/** Added before the host starts, because it counts from its first command on. */
export function addHostMetrics(metrics: Registry | undefined): HostMetrics {
  return {
    commands: addCount(metrics, {
      name: "stations_commands_total",
      help: "Commands by type and result: accepted, the code of the refusal, or the failure.",
      labels: { type: TYPES, result: ["accepted", ...FAILURES, ...REFUSAL_CODES] },
    }),
    commandSeconds: addDuration(metrics, {
      name: "stations_command_duration_seconds",
      help: "From a command's first turn in its mailbox to its answer; of an attestation to the end of its settlement. A repeated request counts again.",
      labels: { type: TYPES },
    }),
    lateEvidenceLeftOut: addCount(metrics, {
      name: "stations_late_evidence_left_out_total",
      help: "Refused reports that were not kept: a repetition for the same intent, or beyond the limit of the intent.",
    }),
    conflicts: addCount(metrics, {
      name: "stations_append_conflicts_total",
      help: "Appends that the log refused because another host's commit was first.",
    }),
    unknownAppends: addCount(metrics, {
      name: "stations_append_unknown_outcomes_total",
      help: "Appends that were not acknowledged in time, so that the host had to read the log back.",
    }),
    confirmations: addCount(metrics, {
      name: "stations_state_confirmations_total",
      help: "Checks, before an answer without a commit, that the host's state is the newest: newest, outdated (the command is done again), or unknown.",
      labels: { result: ["newest", "outdated", "unknown"] },
    }),
    settlements: addCount(metrics, {
      name: "stations_settlements_total",
      help: "Settlements whose outcome was committed: succeeded, or the code of the refusal.",
      labels: { result: ["succeeded", ...SETTLEMENT_REFUSALS] },
    }),
    settlementRetries: addCount(metrics, {
      name: "stations_settlement_retries_total",
      help: "Attempts of a settlement that have to be repeated.",
    }),
  };
}

/** What the gauges read from a running host at each scrape. */
interface HostReadings {
  owned(): ReadonlySet<number>;
  residentStates(): number;
  waitingCommands(): number;
  stationsWithUnknownAppend(): number;
  leaseAges(): readonly { readonly log: string; readonly ageMs: number }[];
  oldestSettlingAgeMs(): number;
  busyRefusals(): Readonly<Record<"station" | "host", number>>;
}

export function addHostGauges(metrics: Registry | undefined, host: HostReadings): void {
  addGauge(metrics, "stations_partitions_owned", "Partitions that this host serves.", () => host.owned().size);
  addGauge(metrics, "stations_resident_states", "Station states kept decoded.", () => host.residentStates());
  addGauge(metrics, "stations_commands_waiting", "Commands waiting in mailboxes.", () => host.waitingCommands());
  addGauge(
    metrics,
    "stations_unknown_appends",
    "Stations that take no commands until the outcome of an append is known.",
    () => host.stationsWithUnknownAppend(),
  );
  addGauges(
    metrics,
    {
      name: "stations_lease_age_seconds",
      help: "Time since the newest acknowledged renewal of this host's lease, by log; from 1.5 s on its stations wait.",
      labels: ["log"],
    },
    () => host.leaseAges().map(({ log, ageMs }) => [{ log }, ageMs / 1_000] as const),
  );
  addGauge(
    metrics,
    "stations_oldest_settling_age_seconds",
    "Age of the oldest attestation whose settlement has not ended, in the time of the bus; 0 when there is none.",
    () => host.oldestSettlingAgeMs() / 1_000,
  );
  addReadCount(
    metrics,
    {
      name: "stations_busy_total",
      help: "Commands refused because a queue was full: of their station, or of the whole host.",
      labels: ["queue"],
    },
    () => Object.entries(host.busyRefusals()).map(([queue, count]) => [{ queue }, count] as const),
  );
}

/** The type of a piece of work. A function decides its command only when its turn comes: these are the heartbeats. */
export function typeOf({ command }: Work): StationCommandType | "liveness" {
  return typeof command === "function" ? "liveness" : command.type;
}

/** The result of a piece of work, in one word. */
export function resultOf(answer: StationAnswer): string {
  if (isFailure(answer)) return answer.failure;
  return answer.reply.ok ? "accepted" : answer.reply.code;
}
