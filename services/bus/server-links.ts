/**
 * Leaves a NATS server that is cut off from another server of its cluster while a third one reaches both.
 *
 *   A ──✕── B     A server passes a message on to the servers that it is connected to, and these do not pass it on
 *    ╲     ╱      again. So a process at A does not reach a process at B, although both servers reach a majority, and
 *     ╲   ╱       `quorum.ts` stays at them.
 *       C
 *
 * The processes report which servers they hear: they have received a report of a process at that server. A and B are
 * cut off from each other when C hears both, and one of them does not hear the other. Then the processes at the server
 * whose name comes last go to another server.
 *
 * A server that ended or stalled is heard by nobody, so it is not cut off. A host that does not answer says nothing
 * about servers, so unanswered requests do not count.
 */
import type { Msg } from "nats";
import { z } from "zod";
import { BUS_LIMITS } from "./limits.ts";
import type { WatchDeps } from "./quorum.ts";
import { SERVER_REPORTS } from "./subjects.ts";

const ageMs = z.number().min(0);
const reportSchema = z.object({
  cluster: z.string(),
  /** The server of the process that reports. */
  server: z.string(),
  /** How long the process has been connected to it. */
  connectedMs: ageMs,
  /** By server: how long ago the process has received a report from there. */
  heardMs: z.record(z.string(), ageMs),
});

/** What the processes at one server hear. */
export type ServerReport = Pick<z.infer<typeof reportSchema>, "connectedMs" | "heardMs">;

/**
 * The name of a server that comes before `server` and is cut off from it; undefined when there is none. `reports` are
 * the newest ones, by server, with one of `server` itself.
 */
export function cutOffFrom(server: string, reports: ReadonlyMap<string, ServerReport>): string | undefined {
  const hears = (by: string, heard: string): boolean =>
    (reports.get(by)?.heardMs[heard] ?? Number.POSITIVE_INFINITY) <= BUS_LIMITS.serverHeardMs;
  const misses = (by: string, missed: string): boolean => {
    const report = reports.get(by);
    if (report === undefined) return false;
    return (
      Math.min(report.connectedMs, report.heardMs[missed] ?? Number.POSITIVE_INFINITY) >= BUS_LIMITS.serverMissedMs
    );
  };
  const heard = new Set([...reports.values()].flatMap(({ heardMs }) => Object.keys(heardMs)));
  return [...heard].find(
    (other) =>
      other < server &&
      (misses(server, other) || misses(other, server)) &&
      [...reports.keys()].some((third) => hears(third, server) && hears(third, other)),
  );
}

/** Undefined for what no process of this version has sent. */
function reportOf(message: Msg): z.infer<typeof reportSchema> | undefined {
  try {
    return reportSchema.safeParse(message.json()).data;
  } catch {
    return undefined;
  }
}

export class ServerLinks {
  readonly #deps: WatchDeps;
  readonly #timer: NodeJS.Timeout;
  #connectedAtMs = performance.now();
  #turnAtMs = performance.now();
  /** The newest report of each other server, for as long as it counts. */
  readonly #reports = new Map<string, { readonly atMs: number; readonly report: ServerReport }>();
  /** Reports of processes at the same server since the last turn, with those of this process. */
  #reportsHere = 0;
  #hasReported = false;
  /** In how many turns one after the other the server was cut off. */
  #cutTurns = 0;
  #mayLeaveAtMs = 0;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
    deps.nc.subscribe(SERVER_REPORTS, {
      callback: (error, message) => {
        if (error === null) this.#receive(message);
      },
    });
    this.#timer = setInterval(() => this.#turn(), BUS_LIMITS.serverReportMs);
    this.#timer.unref();
  }

  /** The process is connected to a server again, perhaps to another one. */
  begin(): void {
    this.#connectedAtMs = performance.now();
    this.#reports.clear();
    this.#cutTurns = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #receive(message: Msg): void {
    const { server_name: here, cluster } = this.#deps.nc.info ?? {};
    const report = reportOf(message);
    if (report === undefined || report.cluster !== cluster) return;
    if (report.server === here) this.#reportsHere += 1;
    else this.#reports.set(report.server, { atMs: performance.now(), report });
  }

  #turn(): void {
    const { nc, isUp } = this.#deps;
    const nowMs = performance.now();
    // After a stall of this process, reports may have arrived that it has not read yet.
    const wasStalled = nowMs - this.#turnAtMs > 2 * BUS_LIMITS.serverReportMs;
    this.#turnAtMs = nowMs;
    const { server_name: server, cluster } = nc.info ?? {};
    if (!isUp() || wasStalled || server === undefined || cluster === undefined) return this.begin();
    const own = this.#ownReport(nowMs);
    this.#leaveIfCutOff(server, own);
    // Some reports of each server are enough, however many processes are connected to it.
    const others = this.#reportsHere - Number(this.#hasReported);
    this.#reportsHere = 0;
    this.#hasReported = others < BUS_LIMITS.serverReporters;
    if (this.#hasReported) nc.publish(SERVER_REPORTS, JSON.stringify({ cluster, server, ...own }));
  }

  #ownReport(nowMs: number): ServerReport {
    const heardMs: Record<string, number> = {};
    for (const [server, { atMs }] of this.#reports) {
      if (nowMs - atMs >= BUS_LIMITS.serverMissedMs) this.#reports.delete(server);
      else heardMs[server] = Math.round(nowMs - atMs);
    }
    return { connectedMs: Math.round(nowMs - this.#connectedAtMs), heardMs };
  }

  #leaveIfCutOff(server: string, own: ServerReport): void {
    const { nc, choice, log } = this.#deps;
    const nowMs = performance.now();
    const reports = new Map([[server, own]]);
    for (const [name, { atMs, report }] of this.#reports) {
      if (nowMs - atMs <= BUS_LIMITS.serverHeardMs) reports.set(name, report);
    }
    const other = cutOffFrom(server, reports);
    this.#cutTurns = other === undefined ? 0 : this.#cutTurns + 1;
    if (this.#cutTurns < BUS_LIMITS.serverCutTurns || nowMs < this.#mayLeaveAtMs || nc.getServers().length < 2) return;
    this.#mayLeaveAtMs = nowMs + BUS_LIMITS.leaveCutMs;
    log.warn(
      { server: nc.getServer(), cutOffFrom: other },
      "this NATS server is cut off from another one of its cluster; the process goes to a third one",
    );
    choice.leave(nc.getServer());
    void nc.reconnect();
  }
}
