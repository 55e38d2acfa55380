/**
 * Three nats-server processes that form one cluster with JetStream. Each dials the two others through a separate link,
 * so that any pair of servers can be separated. A server advertises an address where nothing listens: otherwise the
 * servers would learn each other's real addresses and go around the links.
 */
import { randomBytes } from "node:crypto";
import { readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { inject } from "vitest";
import { type Child, startChild, untilReady } from "../../deploy/child.ts";
import { greetsAsNats } from "../../deploy/embedded/nats.ts";
import { freePort } from "../support/free-port.ts";
import { stall } from "../support/stall.ts";
import { serverFolder, type TemporaryFolder } from "../support/temporary-folder.ts";
import { Link } from "./link.ts";

export const NODES = ["n0", "n1", "n2"] as const;
export type NodeName = (typeof NODES)[number];

const START_MS = 10_000;
const FORM_MS = 30_000;
const STOP_MS = 5_000;
const POLL_MS = 50;

interface Ports {
  readonly client: number;
  readonly cluster: number;
  readonly monitor: number;
}

export interface ClusterOptions {
  /** The nats-server to run; by default that of the test run. */
  readonly binary: string;
  /** The servers dial each other without links, so that none can be separated and no proxy costs CPU. */
  readonly isDirect: boolean;
  /** The servers name each other to their clients, as they do unless they are configured otherwise. */
  readonly advertises: boolean;
  /** A server whose streams are in a separate folder. */
  readonly smallDisk: { readonly node: NodeName; readonly path: string } | undefined;
}

export class NatsCluster {
  readonly #folder: TemporaryFolder = serverFolder("cluster");
  readonly #token = randomBytes(12).toString("hex");
  readonly #ports = new Map<NodeName, Ports>();
  /** The links by the server that dials and the dialled server. */
  readonly #links = new Map<`${NodeName}>${NodeName}`, Link>();
  /** The links between a client and each server, for the clients that have some. */
  readonly #clientLinks = new Map<string, ReadonlyMap<NodeName, Link>>();
  readonly #children = new Map<NodeName, Child>();

  readonly #options: ClusterOptions;

  constructor(options: ClusterOptions) {
    this.#options = options;
  }

  /** Starts the servers and waits until they have elected a leader for their streams. */
  static async start(options: Partial<ClusterOptions> = {}): Promise<NatsCluster> {
    const { binary = inject("natsBinary").path, isDirect = false, advertises = false, smallDisk } = options;
    const cluster = new NatsCluster({ binary, isDirect, advertises, smallDisk });
    try {
      await cluster.#prepare();
      await Promise.all(NODES.map((node) => cluster.startNode(node)));
      await cluster.#formed();
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** All servers; a client connects to one of them by chance. */
  url(): string {
    return NODES.map((node) => this.nodeUrl(node)).join(",");
  }

  /** One server alone. */
  nodeUrl(node: NodeName): string {
    return `nats://${this.#token}@127.0.0.1:${this.#portsOf(node).client}`;
  }

  /** All servers, each through a link for this client alone. */
  async linkedUrl(client: string): Promise<string> {
    const links = new Map<NodeName, Link>();
    for (const node of NODES) links.set(node, await Link.open(this.#portsOf(node).client));
    this.#clientLinks.set(client, links);
    return [...links.values()].map(({ port }) => `nats://${this.#token}@127.0.0.1:${port}`).join(",");
  }

  /** The links between a client and each server. Throws for a client that has none. */
  linksOf(client: string): ReadonlyMap<NodeName, Link> {
    const links = this.#clientLinks.get(client);
    if (links === undefined) throw new Error(`There are no links of ${client}.`);
    return links;
  }

  get pids(): readonly number[] {
    return NODES.map((node) => this.#childOf(node).pid);
  }

  logFile(node: NodeName): string {
    return join(this.#folder.path, `${node}.log`);
  }

  /** Starts a server that does not run; resolves when it answers. */
  async startNode(node: NodeName): Promise<void> {
    const { client } = this.#portsOf(node);
    const child = await startChild({
      command: this.#options.binary,
      args: ["--config", join(this.#folder.path, `${node}.conf`)],
      spawn: { cwd: this.#folder.path },
      stopSignal: "SIGTERM",
      stopMs: STOP_MS,
      orphanSignal: "TERM",
    });
    this.#children.set(node, child);
    const logFile = this.logFile(node);
    const exit = await untilReady(child, {
      name: `The server ${node}`,
      code: "nats_node",
      logFile,
      timeoutMs: START_MS,
      isReady: (signal) => greetsAsNats("127.0.0.1", client, signal),
    });
    if (exit !== undefined) {
      throw new Error(`The server ${node} did not start; its log is ${logFile}.\n${child.output.tail()}`);
    }
  }

  /** SIGTERM, as an operator or a rolling update sends it. */
  async stopNode(node: NodeName): Promise<void> {
    await this.#childOf(node).stop();
  }

  async killNode(node: NodeName): Promise<void> {
    await this.#childOf(node).kill();
  }

  /** Where a server has its streams. */
  storeFolder(node: NodeName): string {
    return join(this.#folder.path, node);
  }

  /** Deletes what a server has stored. The server must not run. */
  emptyDisk(node: NodeName): void {
    for (const entry of readdirSync(this.storeFolder(node))) {
      rmSync(join(this.storeFolder(node), entry), { recursive: true });
    }
  }

  /** Sends the signal. After SIGSTOP it returns when the server has stopped. */
  signalNode(node: NodeName, signal: "SIGSTOP" | "SIGCONT"): void {
    const { pid } = this.#childOf(node);
    if (signal === "SIGSTOP") stall(pid);
    else process.kill(pid, signal);
  }

  /** Separates two servers; each notices it only by the silence of the other. */
  cut(one: NodeName, other: NodeName): void {
    for (const link of this.#between(one, other)) link.cut();
  }

  join(one: NodeName, other: NodeName): void {
    for (const link of this.#between(one, other)) link.join();
  }

  /** Nothing that the first one sends reaches the other any more; what the other one sends arrives. */
  cutOneWay(from: NodeName, to: NodeName): void {
    this.#links.get(`${from}>${to}`)?.cut(["there"]);
    this.#links.get(`${to}>${from}`)?.cut(["back"]);
  }

  /** Delays everything between this server and the others by this time, in each direction. */
  slow(node: NodeName, delayMs: number): void {
    for (const other of NODES) if (other !== node) for (const link of this.#between(node, other)) link.slow(delayMs);
  }

  /** Ends every connection between the servers; they dial again at once. */
  resetLinks(): void {
    for (const link of this.#links.values()) link.reset();
  }

  /** Separates a server from both others. */
  isolate(node: NodeName): void {
    for (const other of NODES) if (other !== node) this.cut(node, other);
  }

  /** Keeps the copies of streams at a server as they are, while its clients still reach the other servers. */
  lag(node: NodeName): void {
    for (const other of NODES) if (other !== node) for (const link of this.#between(node, other)) link.lag();
  }

  reunite(node: NodeName): void {
    for (const other of NODES) if (other !== node) this.join(node, other);
  }

  /** Connections that go through each pair's links now. */
  connectionsBetween(one: NodeName, other: NodeName): number {
    return this.#between(one, other).reduce((sum, link) => sum + link.connections, 0);
  }

  /** What a server's monitoring answers, for example `connz` or `jsz?streams=1`. Rejects when it does not within a second. */
  async monitor<T>(node: NodeName, path: string): Promise<T> {
    const url = `http://127.0.0.1:${this.#portsOf(node).monitor}/${path}`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(1_000) });
    return (await answer.json()) as T;
  }

  /** The server that leads JetStream as a whole; undefined while there is none. */
  async leader(): Promise<NodeName | undefined> {
    const { meta_cluster: meta } = await this.monitor<{ meta_cluster?: { leader?: string } }>("n0", "jsz");
    return NODES.find((node) => node === meta?.leader);
  }

  /** The leader of each stream, as this server knows it. */
  async leadersKnownAt(node: NodeName): Promise<readonly (string | undefined)[]> {
    const { account_details: accounts = [] } = await this.monitor<{
      account_details?: { stream_detail?: { cluster?: { leader?: string } }[] }[];
    }>(node, "jsz?streams=1");
    return accounts.flatMap(({ stream_detail: streams = [] }) => streams.map(({ cluster }) => cluster?.leader));
  }

  /** Ends the servers and removes their data. */
  async stop(): Promise<void> {
    await Promise.all([...this.#children.values()].map((child) => child.kill()));
    const clientLinks = [...this.#clientLinks.values()].flatMap((links) => [...links.values()]);
    await Promise.all([...this.#links.values(), ...clientLinks].map((link) => link.close()));
    this.#folder.remove();
  }

  async #prepare(): Promise<void> {
    for (const node of NODES) {
      const [client, cluster, monitor] = [await freePort(), await freePort(), await freePort()];
      this.#ports.set(node, { client, cluster, monitor });
    }
    for (const from of NODES) {
      for (const to of NODES) {
        if (from !== to && !this.#options.isDirect)
          this.#links.set(`${from}>${to}`, await Link.open(this.#portsOf(to).cluster));
      }
    }
    for (const node of NODES) writeFileSync(join(this.#folder.path, `${node}.conf`), this.#configuration(node));
    const { smallDisk } = this.#options;
    if (smallDisk !== undefined) symlinkSync(smallDisk.path, this.storeFolder(smallDisk.node));
  }

  /** It has the pings of `deploy/production/nats/nats-server.conf`: the effect of a cut or a stall depends on them. */
  #configuration(node: NodeName): string {
    const { client, cluster, monitor } = this.#portsOf(node);
    const routes = NODES.filter((other) => other !== node).map(
      (other) => `nats-route://127.0.0.1:${this.#links.get(`${node}>${other}`)?.port ?? this.#portsOf(other).cluster}`,
    );
    return `server_name: ${node}
listen: "127.0.0.1:${client}"
ping_interval: "5s"
ping_max: 2
http: "127.0.0.1:${monitor}"
authorization { token: ${JSON.stringify(this.#token)} }
log_file: ${JSON.stringify(this.logFile(node))}
jetstream { store_dir: ${JSON.stringify(this.storeFolder(node))}, sync_interval: always, max_file_store: 1PB }
cluster {
  name: restaurant
  ping_interval: "30s"
  ping_max: 2
  listen: "127.0.0.1:${cluster}"
  advertise: "127.0.0.1:1"
  no_advertise: ${String(!this.#options.advertises)}
  routes: [${routes.map((route) => JSON.stringify(route)).join(", ")}]
}
`;
  }

  /** Resolves when a leader of JetStream knows all three servers. */
  async #formed(): Promise<void> {
    const deadlineMs = performance.now() + FORM_MS;
    for (;;) {
      const size = await this.monitor<{ meta_cluster?: { leader?: string; cluster_size?: number } }>("n0", "jsz").catch(
        () => undefined,
      );
      const meta = size?.meta_cluster;
      if (meta?.leader !== undefined && meta.leader !== "" && meta.cluster_size === NODES.length) return;
      if (performance.now() > deadlineMs) throw new Error("The NATS cluster did not elect a leader.");
      await delay(POLL_MS);
    }
  }

  #between(one: NodeName, other: NodeName): Link[] {
    const found = [this.#links.get(`${one}>${other}`), this.#links.get(`${other}>${one}`)];
    return found.filter((link) => link !== undefined);
  }

  #portsOf(node: NodeName): Ports {
    const ports = this.#ports.get(node);
    if (ports === undefined) throw new Error(`There is no server ${node}.`);
    return ports;
  }

  #childOf(node: NodeName): Child {
    const child = this.#children.get(node);
    if (child === undefined) throw new Error(`The server ${node} was never started.`);
    return child;
  }
}
