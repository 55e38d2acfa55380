/** What an actor host counts, for its metrics. */
import type { Registry } from "prom-client";
import type { StationCommandType } from "../../machines/station/command.ts";
import { addCount, addDuration, addGauge, addReadCount, type Count, type Duration } from "../runtime/figures.ts";
import type { StationHost } from "./host.ts";
import { isFailure, type StationAnswer, type Work } from "./work.ts";

export interface HostFigures {
  readonly commands: Count<"type" | "result">;
  readonly commandSeconds: Duration<"type">;
  readonly lateEvidenceLeftOut: Count<never>;
  readonly conflicts: Count<never>;
  readonly doubts: Count<never>;
  readonly confirmations: Count<"result">;
  readonly settlements: Count<"result">;
  readonly settlementRetries: Count<never>;
}

/** Added before the host starts, because it counts from its first command on. */
export function addHostFigures(metrics: Registry | undefined): HostFigures {
  return {
    commands: addCount(metrics, {
      name: "stations_commands_total",
      help: "Commands by type and result: accepted, the code of the refusal, or why nothing could be done.",
      labels: ["type", "result"],
    }),
    commandSeconds: addDuration(metrics, {
      name: "stations_command_duration_seconds",
      help: "From a command's turn in its mailbox to its answer.",
      labels: ["type"],
    }),
    lateEvidenceLeftOut: addCount(metrics, {
      name: "stations_late_evidence_left_out_total",
      help: "Refused reports of which nothing was kept: said before about the same intent, or one too many about it.",
    }),
    conflicts: addCount(metrics, {
      name: "stations_append_conflicts_total",
      help: "Appends that the log refused because somebody else's commit was first.",
    }),
    doubts: addCount(metrics, {
      name: "stations_append_doubts_total",
      help: "Appends that were not acknowledged in time and were read back.",
    }),
    confirmations: addCount(metrics, {
      name: "stations_state_confirmations_total",
      help: "Checks, before an answer without a commit, that the host's state is the newest: newest, outdated (the command is done again), or unknown.",
      labels: ["result"],
    }),
    settlements: addCount(metrics, {
      name: "stations_settlements_total",
      help: "Settlements whose outcome was committed: succeeded, or the code of the refusal.",
      labels: ["result"],
    }),
    settlementRetries: addCount(metrics, {
      name: "stations_settlement_retries_total",
      help: "Attempts of a settlement that have to be repeated.",
    }),
  };
}

/** What is read from a running host when somebody asks. */
export function addHostGauges(metrics: Registry | undefined, host: StationHost): void {
  addGauge(metrics, "stations_partitions_owned", "Partitions that this host serves.", () => host.owned().size);
  addGauge(metrics, "stations_resident_states", "Station states kept decoded.", () => host.residentStates());
  addGauge(metrics, "stations_commands_waiting", "Commands waiting in mailboxes.", () => host.waitingCommands());
  addGauge(
    metrics,
    "stations_unknown_appends",
    "Stations that take no commands until the outcome of an append is known.",
    () => host.stationsWithUnknownAppend(),
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

/** The type of a piece of work; what heartbeats lead to is only decided when its turn has come. */
export function typeOf({ command }: Work): StationCommandType | "liveness" {
  return typeof command === "function" ? "liveness" : command.type;
}

/** What came of a piece of work, in one word. */
export function resultOf(answer: StationAnswer): string {
  if (isFailure(answer)) return answer.failure;
  return answer.reply.ok ? "accepted" : answer.reply.code;
}
