/** The actor host: owns partitions, takes their commands, keeps their deadlines, and sees their settlements and QR payments through. */
import type { Msg } from "nats";
import { PARTITION_COUNT, partitionOf } from "../../machines/partition.ts";
import type { Bus } from "../bus/connection.ts";
import { countLate, dropLate, requestIdOf } from "../bus/deadline.ts";
import { issueSentence } from "../bus/issue-sentence.ts";
import { stationRequestSchema } from "../bus/messages/station-commands.ts";
import { invalidRequest } from "../bus/operation.ts";
import type { StationLogs } from "../bus/station-logs.ts";
import { LEASES } from "../bus/streams.ts";
import { parseStationId } from "../bus/subjects.ts";
import type { SwitchesReplica } from "../bus/switches-replica.ts";
import { turnPublisher } from "../bus/turn-publisher.ts";
import type { Log } from "../runtime/log.ts";
import { currentRequestId, forRequest } from "../runtime/request-context.ts";
import { CommandRunner } from "./command-runner.ts";
import { ConfirmationChecks } from "./confirmation-checks.ts";
import type { HostFigures } from "./figures.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { LogPlace } from "./log-leases.ts";
import { Mailboxes } from "./mailboxes.ts";
import { OwnWork } from "./own-work.ts";
import { Ownership } from "./ownership.ts";
import { Partition } from "./partition.ts";
import { ProviderSaga } from "./provider-saga.ts";
import { type ScanDeps, scanHeartbeats, scanStations } from "./scan.ts";
import type { StationsSettings } from "./settings.ts";
import { SettlementSaga } from "./settlement-saga.ts";
import { type KnownStation, StateCache } from "./state-cache.ts";
import { StationLog } from "./station-log.ts";
import { UnknownAppends } from "./unknown-appends.ts";
import { Withdrawals } from "./withdrawals.ts";
import { type StationAnswer, UNAVAILABLE } from "./work.ts";

/** The name of commands in the count of late requests. */
const OPERATION = "station.command";

/** All hosts' records are in one bucket. */
const LEASE_PLACES: readonly LogPlace[] = [
  {
    stream: `KV_${LEASES.name}`,
    prefix: `$KV.${LEASES.name}.host.`,
    partitions: Array.from({ length: PARTITION_COUNT }, (_, partition) => partition),
  },
];

export interface HostDeps {
  readonly bus: Bus;
  /** A connection for nothing but leases: the server works a connection off in order, and a renewal must not wait for a read. */
  readonly leaseBus: Bus;
  /** A connection for reading whole streams, which takes the server seconds. */
  readonly scanBus: Bus;
  readonly log: Log;
  readonly logs: StationLogs;
  readonly hostId: string;
  readonly switches: SwitchesReplica;
  readonly settings: StationsSettings;
  readonly figures: HostFigures;
}

export class StationHost {
  readonly #deps: HostDeps;
  readonly #partitions = new Map<number, Partition>();
  readonly #cache = new StateCache();
  readonly #stationLog: StationLog;
  readonly #mailboxes: Mailboxes;
  readonly #ownWork: OwnWork;
  readonly #unknownAppends: UnknownAppends;
  readonly #confirmations: ConfirmationChecks;
  readonly #saga: SettlementSaga;
  readonly #providers: ProviderSaga;
  readonly #withdrawals: Withdrawals;
  readonly #ownership: Ownership;
  readonly #scans = new AbortController();
  readonly #ticker: NodeJS.Timeout;
  readonly #stopListening: () => void;
  /** Commits that came after a scan and may be the host's before, by station: the newest one's sequence. */
  readonly #lateCommits = new Map<number, number>();
  /** Of the server that everything known was read from; another one after each start of it. */
  #serverId: string | undefined;

  constructor(deps: HostDeps) {
    this.#deps = deps;
    this.#serverId = deps.bus.nc.info?.server_id;
    const { bus, log, settings, switches, figures } = deps;
    this.#stationLog = new StationLog(bus, deps.logs);
    this.#mailboxes = new Mailboxes((stationId, work) =>
      forRequest(work.requestId, () => runner.perform(stationId, work)),
    );
    this.#ownWork = new OwnWork(this.#mailboxes);
    this.#unknownAppends = new UnknownAppends({
      log,
      ownWork: this.#ownWork,
      canAppend: (stationId) => bus.isUp() && this.#isServed(stationId),
    });
    this.#confirmations = new ConfirmationChecks({
      nc: bus.nc,
      log,
      tick: (stationId) => this.#partitions.get(partitionOf(stationId))?.look(stationId),
    });
    const runner = new CommandRunner({
      nc: bus.nc,
      clock: bus.clock,
      log,
      stationLog: this.#stationLog,
      cache: this.#cache,
      switches,
      settings: settings.machine,
      figures,
      isServed: (stationId) => this.#isServed(stationId),
      isHeld: (stationId) => this.#partitions.has(partitionOf(stationId)),
      onKnown: (stationId, known) => this.#observe(stationId, known),
      unknownAppends: this.#unknownAppends,
      confirmations: this.#confirmations,
      awaitSettlement: (stationId, work) => this.#saga.await(stationId, work),
    });
    this.#saga = new SettlementSaga({ nc: bus.nc, log, mailboxes: this.#mailboxes, figures });
    this.#withdrawals = new Withdrawals({ nc: bus.nc, log, mailboxes: this.#mailboxes });
    this.#providers = new ProviderSaga({ nc: bus.nc, log, mailboxes: this.#mailboxes, switches });
    this.#ownership = new Ownership(LEASE_PLACES, {
      bus: deps.leaseBus,
      log,
      hostId: deps.hostId,
      canServe: () => bus.isUp(),
      acquire: (partitions) => this.#acquire(partitions),
      release: (partitions) => this.#release(partitions),
      drop: (partitions) => this.#drop(partitions),
      setListening: (partitions, isListening) => {
        for (const index of partitions) this.#partitions.get(index)?.setListening(isListening);
      },
    });
    this.#ticker = setInterval(() => this.#tick(), STATION_LIMITS.tickMs);
    this.#stopListening = bus.onChange((isUp) => this.#onBusChange(isUp));
  }

  async start(): Promise<void> {
    countLate(this.#deps.bus.nc, OPERATION);
    await this.#ownership.start();
    await this.#deps.bus.nc.flush();
  }

  /** Hands over what this host owns and ends; takes less than 500 ms. */
  async stop(): Promise<void> {
    this.#scans.abort();
    this.#stopListening();
    clearInterval(this.#ticker);
    await this.#ownership.stop();
    this.#withdrawals.stop();
    this.#unknownAppends.stop();
    this.#stationLog.close();
  }

  /** The partitions that this host serves now. */
  owned(): ReadonlySet<number> {
    return new Set([...this.#partitions.keys()].filter((index) => this.#ownership.isCurrent(index)));
  }

  /** How many states are kept decoded: what a resident station costs, as opposed to a passive one. */
  residentStates(): number {
    return this.#cache.size;
  }

  /** Commands that wait for their station, all stations together. */
  waitingCommands(): number {
    return this.#mailboxes.waiting;
  }

  /** Stations that take no commands until the outcome of an append is known. */
  stationsWithUnknownAppend(): number {
    return this.#unknownAppends.size;
  }

  leaseAges(): ReturnType<Ownership["leaseAges"]> {
    return this.#ownership.leaseAges();
  }

  oldestSettlingAgeMs(): number {
    return this.#saga.oldestAgeMs(this.#deps.bus.clock.nowMs());
  }

  /** Commands refused because a queue was full. */
  busyRefusals(): Readonly<Record<"station" | "host", number>> {
    return this.#mailboxes.busyRefusals;
  }

  /** Partitions that some host serves, this one or another; undefined while no lease of this host is current. */
  partitionsOwned(): number | undefined {
    return this.#ownership.heldByAnyHost()?.size;
  }

  #receive(message: Msg): void {
    const answer = (given: StationAnswer): void => {
      if (message.reply !== undefined) turnPublisher(this.#deps.bus.nc).publish(message.reply, JSON.stringify(given));
    };
    if (dropLate({ nc: this.#deps.bus.nc, log: this.#deps.log }, message, OPERATION)) return;
    const stationId = parseStationId(message.subject);
    if (!this.#ownership.isCurrent(partitionOf(stationId))) return answer(UNAVAILABLE);
    let body: unknown;
    try {
      body = message.json();
    } catch {
      body = undefined;
    }
    const parsed = stationRequestSchema.safeParse(body, { error: issueSentence });
    if (!parsed.success) {
      const { errors = [] } = invalidRequest(parsed.error);
      this.#deps.log.error({ subject: message.subject, errors }, "a command was not understood");
      return answer({ failure: "invalid_request", errors });
    }
    this.#mailboxes.submit(stationId, { ...parsed.data, answer, requestId: currentRequestId() });
  }

  #isServed(stationId: number): boolean {
    const partition = partitionOf(stationId);
    return this.#ownership.isCurrent(partition) && this.#partitions.has(partition);
  }

  #observe(stationId: number, { state }: KnownStation): void {
    if (state === null) return;
    const partition = this.#partitions.get(partitionOf(stationId));
    // A command that ends after its partition was given up must not leave anything behind.
    if (partition === undefined) return this.#cache.delete(stationId);
    partition.observe(stationId, state);
    if (state.intent?.status === "settling") this.#saga.start(stationId, state.intent);
    this.#providers.observe(stationId, state);
    this.#withdrawals.observe(stationId, state);
  }

  #acquire(indexes: readonly number[]): void {
    for (const index of indexes) {
      this.#partitions.set(
        index,
        new Partition(index, {
          nc: this.#deps.bus.nc,
          clock: this.#deps.bus.clock,
          ownWork: this.#ownWork,
          deviceSilenceMs: this.#deps.settings.machine.deviceSilenceMs,
          onRequest: (message) => forRequest(requestIdOf(message), () => this.#receive(message)),
        }),
      );
    }
    const opened = indexes.map((index) => this.#partitions.get(index)).filter((partition) => partition !== undefined);
    // Log by log: one that does not answer must not keep the stations of the others.
    for (const [log, ofLog] of Map.groupBy(opened, ({ index }) => this.#deps.logs.ofPartition(index))) {
      void this.#insistOnScan("wake-ups", ofLog, async (still) => {
        await scanStations(this.#scanDeps(), log, still, this.#scans.signal);
        for (const index of still) this.#partitions.get(index)?.finishScan();
        await scanHeartbeats(this.#scanDeps(), still, this.#scans.signal);
        for (const index of still) this.#partitions.get(index)?.presence.setMayJudge(true);
      });
    }
  }

  /** A planned hand-over: what has arrived is finished, then the partitions are nobody's. */
  async #release(indexes: readonly number[]): Promise<void> {
    const { bus } = this.#deps;
    const released = new Set(indexes);
    const deadline = performance.now() + STATION_LIMITS.handOverMs;
    const timeIsUp = new Promise((resolve) => setTimeout(resolve, STATION_LIMITS.handOverMs));
    const drained = indexes.map(async (index) => await this.#partitions.get(index)?.drain());
    if (bus.isUp()) await Promise.race([Promise.all(drained), timeIsUp]);
    while (bus.isUp() && performance.now() < deadline && this.#isBusy(released)) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    this.#drop(indexes);
  }

  #drop(indexes: readonly number[]): void {
    for (const index of indexes) {
      this.#partitions.get(index)?.close();
      this.#partitions.delete(index);
      this.#mailboxes.refuse(index);
      this.#saga.abandon(index);
      this.#providers.abandon(index);
      this.#withdrawals.abandon(index);
      this.#unknownAppends.abandon(index);
      this.#confirmations.abandon(index);
      this.#cache.deletePartition(index);
    }
  }

  #isBusy(partitions: ReadonlySet<number>): boolean {
    return this.#mailboxes.isBusy(partitions) || this.#saga.isBusy(partitions);
  }

  /**
   * After an outage heartbeats may have been missed: they are read again. A single server that was started anew may have lost
   * the newest commits: nothing that is known of a station counts any more. In a cluster the others give them back.
   */
  #onBusChange(isUp: boolean): void {
    const opened = [...this.#partitions.values()];
    const { server_id: serverId, cluster } = this.#deps.bus.nc.info ?? {};
    const isAnotherServer = isUp && serverId !== this.#serverId;
    if (isAnotherServer) this.#serverId = serverId;
    if (isAnotherServer && cluster === undefined) {
      this.#drop([...this.#partitions.keys()]);
      return this.#acquire(opened.map((partition) => partition.index));
    }
    for (const partition of opened) partition.presence.setMayJudge(false);
    if (!isUp) return;
    void this.#insistOnScan("heartbeats", opened, async (still) => {
      await scanHeartbeats(this.#scanDeps(), still, this.#scans.signal);
      for (const index of still) this.#partitions.get(index)?.presence.setMayJudge(true);
    });
  }

  #scanDeps(): ScanDeps {
    return {
      bus: this.#deps.scanBus,
      log: this.#deps.log,
      logs: this.#deps.logs,
      partition: (index) => this.#partitions.get(index),
      onLateCommit: (stationId, sequence) => void this.#lateCommits.set(stationId, sequence),
    };
  }

  /** Repeats a scan until it succeeds, for those of the partitions that are still the same. */
  async #insistOnScan(
    what: string,
    opened: readonly Partition[],
    scan: (still: readonly number[]) => Promise<void>,
  ): Promise<void> {
    const startedAtMs = Date.now();
    while (!this.#scans.signal.aborted) {
      const still = opened.filter((partition) => this.#partitions.get(partition.index) === partition);
      if (still.length === 0) return;
      try {
        await scan(still.map((partition) => partition.index));
        this.#deps.log.info({ what, partitions: still.length, tookMs: Date.now() - startedAtMs }, "scanned");
        return;
      } catch (error) {
        if (this.#scans.signal.aborted) return;
        this.#deps.log.warn({ err: error, what }, "a scan has to be repeated");
        await new Promise((resolve) => setTimeout(resolve, STATION_LIMITS.scanRetryMs));
      }
    }
  }

  #tick(): void {
    const nowMs = this.#deps.bus.clock.nowMs();
    for (const [index, partition] of this.#partitions) if (this.#ownership.isCurrent(index)) partition.tick(nowMs);
    this.#takeUpLateCommits();
    this.#cache.passivate(Date.now() - this.#deps.settings.passivateMs);
  }

  /**
   * A commit that was under way when its host gave the partition up, and was stored after the scan: nobody else sees its
   * collection through. Those of this host are known by the time of a tick, or when what is being done at the station ends.
   */
  #takeUpLateCommits(): void {
    for (const [stationId, sequence] of this.#lateCommits) {
      if (this.#mailboxes.isAtWork(stationId)) continue;
      this.#lateCommits.delete(stationId);
      const partition = this.#partitions.get(partitionOf(stationId));
      const knownSequence = this.#cache.get(stationId)?.sequence ?? 0;
      if (partition === undefined || knownSequence >= sequence) continue;
      this.#cache.delete(stationId);
      partition.look(stationId);
    }
  }
}
