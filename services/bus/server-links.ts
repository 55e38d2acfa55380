/**
 * Leaves a NATS server that is cut off from another server of its cluster while a third one reaches both.
 *
 *   A ──✕── B     A server passes a message on to the servers that it is connected to, and these do not pass it on
 *    ╲     ╱      again. So a process at A does not reach a process at B, although both servers reach a majority, and
 *     ╲   ╱       `quorum.ts` stays at them.
 *       C
 *
 *   processes at each server: "here is one at A", twice a second, to all ── nothing from A for 1.5 s ─► check the links
 *   check: connect to each server of NATS_URL, and send a message from each to each, for a second
 *
 * When the check shows such a cut, the processes at the server whose name comes last go to another server. Nothing else
 * shows it: a server without processes is silent too, and a host without an answer may be stalled.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createInbox, type Msg, type NatsConnection } from "nats";
import { z } from "zod";
import { BUS_LIMITS } from "./limits.ts";
import type { WatchDeps } from "./quorum.ts";
import { PROCESS_HERE } from "./subjects.ts";

const hereSchema = z.object({ cluster: z.string(), server: z.string() });

/** Undefined for a message that no process of this version has sent. */
function processOf(message: Msg): z.infer<typeof hereSchema> | undefined {
  try {
    return hereSchema.safeParse(message.json()).data;
  } catch {
    return undefined;
  }
}

/** By server: the servers whose messages arrive there. */
type Links = ReadonlyMap<string, ReadonlySet<string>>;

/** The name of a server that comes before `server` and is cut off from it. Undefined when there is none. */
export function cutOffFrom(server: string, links: Links): string | undefined {
  const areLinked = (one: string, other: string): boolean =>
    links.get(one)?.has(other) === true && links.get(other)?.has(one) === true;
  const names = [...links.keys()];
  return names.find(
    (other) =>
      other < server &&
      !areLinked(server, other) &&
      names.some((third) => areLinked(third, server) && areLinked(third, other)),
  );
}

/** Sends messages from each server to each, until all have arrived or the time is over. Rejects when a connection is closed. */
async function checkLinks(connections: ReadonlyMap<string, NatsConnection>): Promise<Links> {
  const subject = createInbox();
  const links = new Map([...connections.keys()].map((name) => [name, new Set<string>()]));
  const subscriptions = [...connections].map(([name, nc]) =>
    nc.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) links.get(name)?.add(message.string());
      },
    }),
  );
  const deadlineMs = performance.now() + BUS_LIMITS.linksMs;
  const isWhole = (): boolean => [...links.values()].every(({ size }) => size === connections.size);
  while (!isWhole() && performance.now() < deadlineMs) {
    for (const [name, nc] of connections) nc.publish(subject, name);
    await delay(BUS_LIMITS.linksAgainMs);
  }
  for (const subscription of subscriptions) subscription.unsubscribe();
  return links;
}

export interface ServerLinksDeps extends WatchDeps {
  /** Makes another connection, to this server alone. */
  readonly dial: (server: string) => Promise<NatsConnection>;
}

export class ServerLinks {
  readonly #deps: ServerLinksDeps;
  readonly #timer: NodeJS.Timeout;
  /** By server: when a process there was heard last. */
  readonly #heardAtMs = new Map<string, number>();
  #turnAtMs = performance.now();
  /** How many processes at the same server were heard since the last turn, with this one. */
  #heardHere = 0;
  #hasSent = false;
  #isChecking = false;
  #checkAtMs = performance.now() + BUS_LIMITS.serverMissedMs;

  constructor(deps: ServerLinksDeps) {
    this.#deps = deps;
    deps.nc.subscribe(PROCESS_HERE, {
      callback: (error, message) => {
        if (error === null) this.#receive(message);
      },
    });
    this.#timer = setInterval(() => this.#turn(), BUS_LIMITS.processHereMs);
    this.#timer.unref();
  }

  /** The process is connected to a server again, perhaps to another one. */
  begin(): void {
    this.#heardAtMs.clear();
    this.#checkAtMs = performance.now() + BUS_LIMITS.serverMissedMs;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #receive(message: Msg): void {
    const { server_name: here, cluster } = this.#deps.nc.info ?? {};
    const process = processOf(message);
    if (process === undefined || process.cluster !== cluster) return;
    if (process.server === here) this.#heardHere += 1;
    else this.#heardAtMs.set(process.server, performance.now());
  }

  #turn(): void {
    const { nc, isUp } = this.#deps;
    const nowMs = performance.now();
    // After a stall of this process, messages may have arrived that it has not read yet.
    const wasStalled = nowMs - this.#turnAtMs > 2 * BUS_LIMITS.processHereMs;
    this.#turnAtMs = nowMs;
    const { server_name: server, cluster } = nc.info ?? {};
    if (!isUp() || wasStalled || server === undefined || cluster === undefined) return this.begin();
    for (const [name, heardAtMs] of this.#heardAtMs) {
      if (nowMs - heardAtMs < BUS_LIMITS.serverMissedMs) continue;
      this.#heardAtMs.delete(name);
      this.#checkAtMs = nowMs;
    }
    const isOneUnheard = this.#heardAtMs.size + 1 < nc.getServers().length;
    if (isOneUnheard && nowMs >= this.#checkAtMs && !this.#isChecking) void this.#check(server);
    // Two processes at each server are enough, however many are connected to it.
    const others = this.#heardHere - Number(this.#hasSent);
    this.#heardHere = 0;
    this.#hasSent = others < BUS_LIMITS.processesHere;
    if (this.#hasSent) nc.publish(PROCESS_HERE, JSON.stringify({ cluster, server }));
  }

  async #check(server: string): Promise<void> {
    const { nc, isUp } = this.#deps;
    this.#isChecking = true;
    this.#checkAtMs = performance.now() + BUS_LIMITS.checkLinksMs;
    const address = nc.getServer();
    const others = await this.#dialOthers(address);
    try {
      const other = cutOffFrom(server, await checkLinks(new Map([[server, nc], ...others])));
      if (other !== undefined && nc.getServer() === address && isUp()) this.#leave(address, other);
    } catch {
      // A connection was closed meanwhile: this process ends, or a later check decides.
    } finally {
      this.#isChecking = false;
      await Promise.all([...others.values()].map((each) => each.close()));
    }
  }

  #leave(address: string, other: string): void {
    const { nc, choice, log } = this.#deps;
    log.warn(
      { server: address, cutOffFrom: other },
      "this NATS server is cut off from another one of its cluster; the process goes to a third one",
    );
    choice.leave(address);
    void nc.reconnect();
  }

  /** By name: a connection to each other server that answers. */
  async #dialOthers(address: string): Promise<ReadonlyMap<string, NatsConnection>> {
    const { nc, dial } = this.#deps;
    const others = nc.getServers().filter(({ listen }) => listen !== address);
    const dialled = await Promise.allSettled(others.map(({ listen }) => dial(listen)));
    const made = dialled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    return new Map(made.map((other) => [other.info?.server_name ?? "", other]));
  }
}
