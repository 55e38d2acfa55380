/** Watches during a trial how long entries of the station logs wait for their copy in PostgreSQL (`services/audit`). */
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import type { StationLogDefinition } from "../../services/bus/streams.ts";
import { newestSequence } from "../chaos/station-log-read.ts";
import type { ClusterWorld } from "./cluster-world.ts";

/** How long the copy of an entry may take once its log has a leader. */
export const COPIED_WITHIN_MS = 5_000;
const POLL_MS = 250;

/** The entries of the station logs, and how long each waited for its copy. */
export class CopyWaits {
  /** The newest entries of each log that were read and have no copy yet. */
  readonly #waiting = new Map<string, { readonly sequence: number; readonly atMs: number }[]>();
  readonly #copied: { readonly atMs: number; readonly lagMs: number }[] = [];

  /** Notes that the log has this entry. */
  add(stream: string, sequence: number, atMs: number): void {
    const waiting = this.#waiting.get(stream) ?? [];
    this.#waiting.set(stream, waiting);
    waiting.push({ sequence, atMs });
  }

  /** Notes that the copy has the log's entries up to this one. */
  end(stream: string, sequence: number, atMs: number): void {
    const waiting = this.#waiting.get(stream) ?? [];
    const still = waiting.findIndex((entry) => entry.sequence > sequence);
    for (const entry of waiting.splice(0, still < 0 ? waiting.length : still))
      this.#copied.push({ atMs, lagMs: atMs - entry.atMs });
  }

  /** The longest wait of an entry whose wait ended between these moments, or has not ended. */
  longestMs(fromMs: number, toMs: number): number {
    const ended = this.#copied.flatMap(({ atMs, lagMs }) => (atMs >= fromMs && atMs <= toMs ? [lagMs] : []));
    const underWay = [...this.#waiting.values()].flatMap(([first]) => (first === undefined ? [] : [toMs - first.atMs]));
    return Math.round(ended.concat(underWay).reduce((most, ms) => Math.max(most, ms), 0));
  }
}

export class AuditCopyWatch {
  readonly #world: ClusterWorld;
  readonly #sql: postgres.Sql;
  readonly #waits = new CopyWaits();
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

  /** As in `CopyWaits`. */
  longestMs(fromMs: number, toMs: number): number {
    return this.#waits.longestMs(fromMs, toMs);
  }

  /** While a log has no leader, the watch reads no entry of it. It reads the entry later, so no entry is missed. */
  async #watchEntries(log: StationLogDefinition): Promise<void> {
    let newest = 0;
    await this.#untilStopped(async () => {
      const sequence = await newestSequence(this.#world.bus, log);
      if (sequence <= newest) return;
      newest = sequence;
      this.#waits.add(log.name, sequence, performance.now());
    });
  }

  async #watchCopies(): Promise<void> {
    await this.#untilStopped(async () => {
      const rows = await this.#sql<{ stream: string; sequence: string }[]>`select stream, sequence from audit_position`;
      const atMs = performance.now();
      for (const { stream, sequence } of rows) this.#waits.end(stream, Number(sequence), atMs);
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
