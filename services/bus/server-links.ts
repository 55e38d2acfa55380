/**
 * Leaves a NATS server that is cut off from another server of its cluster while a third one reaches both.
 *
 *   A ──✕── B     A server passes a message on to the servers that it is connected to, and these do not pass it on
 *    ╲     ╱      again. So a process at A does not reach a process at B, although both servers reach a majority, and
 *     ╲   ╱       `quorum.ts` stays at them.
 *       C
 *
 * To check the links, a process connects to each server of NATS_URL, and sends a message from each to each. So a server
 * without processes, a stalled host and an election do not count as a cut. The relay that delivers checks all the time.
 * Every other process checks in three cases: another process reports a cut; a bucket does not answer, because its leader may
 * be at a server that is cut off; no report from a server has arrived for 1.5 s. One process at each server reports twice a
 * second that it is there, and so does each process that knows a cut.
 *
 * Then the processes at A and at B go to C, because from there they reach each other and all leaders. The relay moves the
 * leaders of all streams to C too (`services/relay/spread-leaders.ts`).
 */
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { createInbox, type Msg, type NatsConnection, type Subscription } from "nats";
import { z } from "zod";
import { every } from "../runtime/every.ts";
import { BUS_LIMITS } from "./limits.ts";
import type { WatchDeps } from "./quorum.ts";
import { PROCESS_HERE } from "./subjects.ts";

const reportSchema = z.object({
  cluster: z.string(),
  server: z.string(),
  /** Whether the process that reports knows a cut. */
  isCut: z.boolean(),
});

/** The report that a process is at a server. Undefined for a message that no process of this version has sent. */
function reportIn(message: Msg): z.infer<typeof reportSchema> | undefined {
  try {
    return reportSchema.safeParse(message.json()).data;
  } catch {
    return undefined;
  }
}

/** By server: the servers whose messages arrive there. */
type Links = ReadonlyMap<string, ReadonlySet<string>>;

interface Detour {
  /** Two servers that are cut off from each other. */
  readonly between: readonly [string, string];
  /** A server that reaches both, and more servers than each of them: otherwise processes would change servers again and again. */
  readonly through: string;
}

/** All cuts that have a way around them. */
export function detoursOf(links: Links): readonly Detour[] {
  const areLinked = (one: string, other: string): boolean =>
    links.get(one)?.has(other) === true && links.get(other)?.has(one) === true;
  const names = [...links.keys()];
  const reach = (one: string): number => names.filter((other) => areLinked(one, other)).length;
  const byReach = names.toSorted((one, other) => reach(other) - reach(one));
  return names.flatMap((one) =>
    names.flatMap((other): readonly Detour[] => {
      if (one >= other || areLinked(one, other)) return [];
      const exceeded = Math.max(reach(one), reach(other));
      const through = byReach.find(
        (third) => reach(third) > exceeded && areLinked(third, one) && areLinked(third, other),
      );
      return through === undefined ? [] : [{ between: [one, other], through }];
    }),
  );
}

/** Sends messages from each server to each, until all have arrived or the time is over. Rejects when a connection is closed. */
async function checkLinks(connections: ReadonlyMap<string, NatsConnection>): Promise<Links> {
  const subject = createInbox();
  const links = new Map([...connections.keys()].map((name) => [name, new Set<string>()]));
  const subscriptions: Subscription[] = [];
  const deadlineMs = performance.now() + BUS_LIMITS.linksMs;
  const isWhole = (): boolean => [...links.values()].every(({ size }) => size === connections.size);
  try {
    for (const [name, nc] of connections) {
      const callback = (error: Error | null, message: Msg): void => {
        if (error === null) links.get(name)?.add(message.string());
      };
      subscriptions.push(nc.subscribe(subject, { callback }));
    }
    while (!isWhole() && performance.now() < deadlineMs) {
      for (const [name, nc] of connections) nc.publish(subject, name);
      await delay(BUS_LIMITS.linksAgainMs);
    }
    // After a stall of this process, messages may have arrived that it has not read yet.
    await nextTurn();
  } finally {
    for (const subscription of subscriptions) subscription.unsubscribe();
  }
  return links;
}

interface ServerLinksDeps extends WatchDeps {
  /** Makes another connection, to this server alone. */
  readonly dial: (server: string) => Promise<NatsConnection>;
}

export class ServerLinks {
  readonly #deps: ServerLinksDeps;
  readonly #stopChecks: () => void;
  /** By server: when the last message of a process there arrived. */
  readonly #receivedAtMs = new Map<string, number>();
  #turnAtMs = performance.now();
  /** Messages of processes at the same server since the last turn, with those of this process. */
  #receivedHere = 0;
  #hasReported = false;
  #isChecking = false;
  #isWatching = false;
  #isStopped = false;
  /** By address: the connections of the last check, which the next one uses while the process checks all the time. */
  readonly #dialled = new Map<string, NatsConnection>();
  /** When the process checks the links; infinite when nothing asks for it. */
  #checkAtMs = Number.POSITIVE_INFINITY;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  /** What the last check has found. */
  #detours: readonly Detour[] = [];
  /** When a check has found a cut last. */
  #foundAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: ServerLinksDeps) {
    this.#deps = deps;
    deps.nc.subscribe(PROCESS_HERE, {
      callback: (error, message) => {
        if (error === null) this.#receive(message);
      },
    });
    this.#stopChecks = every(BUS_LIMITS.processHereMs, () => this.#turn());
  }

  /** Forgets the received reports: after a reconnect or a stall of this process, and while NATS is down. */
  begin(): void {
    this.#receivedAtMs.clear();
    this.#receivedHere = 0;
    this.#hasReported = false;
    this.#checkAtMs = this.#detours.length > 0 ? performance.now() : Number.POSITIVE_INFINITY;
  }

  /** The servers that are cut off from another one: none of them should lead a stream. */
  cutOff(): ReadonlySet<string> {
    return new Set(this.#detours.flatMap(({ between }) => between));
  }

  /** Checks the links all the time, until the returned function is called. */
  watch(): () => void {
    this.#isWatching = true;
    return () => {
      this.#isWatching = false;
      if (!this.#isChecking) void this.#closeDialled();
    };
  }

  /** Requests a check at the next turn. */
  checkSoon(): void {
    this.#checkAtMs = Math.min(this.#checkAtMs, performance.now());
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopChecks();
    void this.#closeDialled();
  }

  #receive(message: Msg): void {
    const { server_name: here, cluster } = this.#deps.nc.info ?? {};
    const report = reportIn(message);
    if (report === undefined || report.cluster !== cluster) return;
    if (report.isCut && this.#detours.length === 0) this.checkSoon();
    if (report.server === here) this.#receivedHere += 1;
    else this.#receivedAtMs.set(report.server, performance.now());
  }

  #turn(): void {
    const { nc, isUp } = this.#deps;
    const nowMs = performance.now();
    // After a stall of this process, messages may have arrived that it has not read yet.
    const wasStalled = nowMs - this.#turnAtMs > 2 * BUS_LIMITS.processHereMs;
    this.#turnAtMs = nowMs;
    const { server_name: server, cluster } = nc.info ?? {};
    if (!isUp() || wasStalled || server === undefined || cluster === undefined) return this.begin();
    this.#forgetMissedServers(nowMs);
    const mayCheck = nowMs >= this.#checkAtMs && nowMs - this.#checkedAtMs >= BUS_LIMITS.checkLinksMs;
    if (!this.#isChecking && (mayCheck || this.#isWatching)) void this.#check(server);
    this.#report(cluster, server);
  }

  #forgetMissedServers(nowMs: number): void {
    for (const [name, receivedAtMs] of this.#receivedAtMs) {
      if (nowMs - receivedAtMs < BUS_LIMITS.serverMissedMs) continue;
      this.#receivedAtMs.delete(name);
      this.checkSoon();
    }
  }

  /** One process at each server is enough, however many are connected to it; each that knows a cut reports it. */
  #report(cluster: string, server: string): void {
    const others = this.#receivedHere - Number(this.#hasReported);
    const isCut = this.#detours.length > 0;
    this.#receivedHere = 0;
    this.#hasReported = others < BUS_LIMITS.processesHere || isCut;
    if (this.#hasReported) this.#deps.nc.publish(PROCESS_HERE, JSON.stringify({ cluster, server, isCut }));
  }

  async #check(server: string): Promise<void> {
    const { nc, isUp } = this.#deps;
    this.#isChecking = true;
    this.#checkAtMs = Number.POSITIVE_INFINITY;
    this.#checkedAtMs = performance.now();
    const address = nc.getServer();
    const others = await this.#dialOthers(address);
    // Two addresses may be those of one server.
    const byName = new Map([...others.map((other) => [other.info?.server_name ?? "", other] as const), [server, nc]]);
    try {
      const links = await checkLinks(byName);
      const found = detoursOf(links);
      const areAllDialled = others.length + 1 === nc.getServers().length;
      this.#note(found, areAllDialled && [...links].every(([name, reached]) => reached.has(name)));
      const detour = found.find(({ between }) => between.includes(server));
      if (detour !== undefined && nc.getServer() === address && isUp() && !this.#isStopped) this.#go(detour, byName);
    } catch {
      // A connection was closed meanwhile: this process ends, or a later check decides.
    } finally {
      this.#isChecking = false;
      // Until a check finds the end of the cut.
      if (this.#detours.length > 0) this.checkSoon();
      if (!this.#isWatching || this.#isStopped) await this.#closeDialled();
    }
  }

  /** A check that has not reached every server does not prove the end of a cut that was found a moment ago. */
  #note(found: readonly Detour[], isWhole: boolean): void {
    const nowMs = performance.now();
    if (found.length === 0 && !isWhole && nowMs - this.#foundAtMs < BUS_LIMITS.cutUnprovedMs) return;
    if (found.length > 0) this.#foundAtMs = nowMs;
    this.#detours = found;
  }

  #go({ between, through }: Detour, byName: ReadonlyMap<string, NatsConnection>): void {
    const { nc, choice, log } = this.#deps;
    const next = byName.get(through)?.getServer() ?? "";
    log.warn(
      { server: nc.getServer(), between, next },
      "two NATS servers are cut off from each other; the process goes to one that reaches both",
    );
    choice.goTo(next);
    void nc.reconnect();
  }

  /** A connection to each other server that answers. */
  async #dialOthers(address: string): Promise<readonly NatsConnection[]> {
    const { nc, dial } = this.#deps;
    const others = nc.getServers().filter(({ listen }) => listen !== address);
    const dialled = await Promise.allSettled(
      others.map(async ({ listen }) => {
        const before = this.#dialled.get(listen);
        if (before?.isClosed() === false) return before;
        const other = await dial(listen);
        this.#dialled.set(listen, other);
        return other;
      }),
    );
    return dialled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  }

  async #closeDialled(): Promise<void> {
    const dialled = [...this.#dialled.values()];
    this.#dialled.clear();
    await Promise.allSettled(dialled.map((other) => other.close()));
  }
}
