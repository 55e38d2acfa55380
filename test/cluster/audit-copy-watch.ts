/** Watches during a trial how long entries of the station logs wait for their copy in PostgreSQL (`services/audit`). */
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import type { StationLogDefinition } from "../../services/bus/streams.ts";
import { newestSequence } from "../chaos/station-log-read.ts";
import type { ClusterWorld } from "./cluster-world.ts";

/** How long the copy of an entry may take once its log has a leader. */
export const COPIED_WITHIN_MS = 5_000;
const POLL_MS = 250;

interface Seen {
  readonly sequence: number;
  readonly atMs: number;
}

export class AuditCopyWatch {
  readonly #world: ClusterWorld;
  readonly #sql: postgres.Sql;
  /** The newest entries of each log that the watch has read and that have no copy yet. */
  readonly #waiting = new Map<string, Seen[]>();
  readonly #copied: { readonly atMs: number; readonly lagMs: number }[] = [];
  readonly #stopping = new AbortController();

  constructor(world: ClusterWorld) {
    this.#world = world;
    this.#sql = postgres(world.postgres.url, { max: 1, onnotice: () => undefined });
  }

  /** Watches until `stop`. */
  async run(): Promise<void> {
    const { all } = this.#world.logs;
    await Promise.all([this.#watchCopies(), ...all.map((log) => this.#watchEntries(log))]);
    await this.#sql.end();
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** The longest wait of an entry whose wait ended between these moments, or has not ended. */
  longestMs(fromMs: number, toMs: number): number {
    const ended = this.#copied.flatMap(({ atMs, lagMs }) => (atMs >= fromMs && atMs <= toMs ? [lagMs] : []));
    const underWay = [...this.#waiting.values()].flatMap(([first]) => (first === undefined ? [] : [toMs - first.atMs]));
    return Math.round(Math.max(0, ...ended, ...underWay));
  }

  /** While a log has no leader, the watch reads no entry of it. It reads the entry later, so no entry is missed. */
  async #watchEntries(log: StationLogDefinition): Promise<void> {
    const waiting: Seen[] = [];
    this.#waiting.set(log.name, waiting);
    let newest = 0;
    await this.#untilStopped(async () => {
      const sequence = await newestSequence(this.#world.bus, log);
      if (sequence <= newest) return;
      newest = sequence;
      waiting.push({ sequence, atMs: performance.now() });
    });
  }

  async #watchCopies(): Promise<void> {
    await this.#untilStopped(async () => {
      const rows = await this.#sql<{ stream: string; sequence: string }[]>`select stream, sequence from audit_position`;
      const atMs = performance.now();
      for (const { stream, sequence } of rows) {
        const waiting = this.#waiting.get(stream) ?? [];
        const still = waiting.findIndex((seen) => seen.sequence > Number(sequence));
        for (const seen of waiting.splice(0, still < 0 ? waiting.length : still))
          this.#copied.push({ atMs, lagMs: atMs - seen.atMs });
      }
    });
  }

  /** Repeats the turn until the watch stops. A turn may fail because of a fault. */
  async #untilStopped(turn: () => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await turn().catch(() => undefined);
      await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
