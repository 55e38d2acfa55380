/**
 * Reads the stored station log without the decoder of the product, because a check of payments must not have the same mistake
 * as the code that it checks.
 */
import type { Bus } from "../../services/bus/connection.ts";

export interface LoggedEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface LoggedCommit {
  readonly stationId: number;
  readonly commandId: string;
  readonly events: readonly LoggedEvent[];
  /** The active collection after this commit. */
  readonly active: { readonly intentId: number; readonly status: string; readonly route: string } | null;
}

export interface LogReader {
  /** The station's commits so far, oldest first. */
  commitsOf(stationId: number): readonly LoggedCommit[];
  eventsOf(stationId: number): readonly LoggedEvent[];
  /** Calls the listener with each later commit. Returns a function that ends the calls. */
  onCommit(listener: (commit: LoggedCommit) => void): () => void;
  /** Whether all messages that the stream has now were read. */
  hasCaughtUp(): Promise<boolean>;
  stop(): Promise<void>;
}

const STREAM = "STATION_LOG_0";
/** The stream also holds the confirmations and leases of hosts, and the beats of gateways. */
const COMMITS = "station.log.>";

interface WrittenCommit {
  readonly commandId: string;
  readonly events: readonly LoggedEvent[];
  readonly state: { readonly intent: LoggedCommit["active"] };
}

export async function followLog(bus: Bus): Promise<LogReader> {
  const commits = new Map<number, LoggedCommit[]>();
  const listeners = new Set<(commit: LoggedCommit) => void>();
  let sequence = 0;
  const consumer = await bus.js.consumers.get(STREAM, { filter_subjects: COMMITS });
  const messages = await consumer.consume({
    callback: (message) => {
      sequence = message.seq;
      const stationId = Number(message.subject.split(".").at(-1));
      const { commandId, events, state } = JSON.parse(message.string()) as WrittenCommit;
      const commit: LoggedCommit = { stationId, commandId, events, active: state.intent };
      const known = commits.get(stationId);
      if (known === undefined) commits.set(stationId, [commit]);
      else known.push(commit);
      for (const listener of listeners) listener(commit);
    },
  });
  const commitsOf = (stationId: number): readonly LoggedCommit[] => commits.get(stationId) ?? [];
  return {
    commitsOf,
    eventsOf: (stationId) => commitsOf(stationId).flatMap(({ events }) => events),
    onCommit(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    hasCaughtUp: async () =>
      ((await bus.jsm.streams.getMessage(STREAM, { last_by_subj: COMMITS }))?.seq ?? 0) === sequence,
    stop: async () => void (await messages.close()),
  };
}
