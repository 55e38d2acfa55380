/**
 * The station host: owns partitions, takes their commands, keeps their deadlines, and completes their settlements and QR
 * payments. Calls go down this diagram. The runner reports what it finds as events, which return nothing:
 *
 *   host ──► partitions ──► mailboxes ──► command runner ──► station log
 *    └──► sagas: settlement, provider, withdrawals, unknown appends ──► mailboxes
 *   events to the host: a state was read or committed, an append has an unknown outcome
 */
import { partitionOf } from "../../machines/partition.ts";
import type { Bus } from "../bus/connection.ts";
import { startLateCount } from "../bus/deadline.ts";
import { Failures } from "../bus/outage.ts";
import { LEASES, type StationLogDefinition, type StationLogs } from "../bus/streams.ts";
import type { SwitchesReplica } from "../bus/switches-replica.ts";
import { every } from "../runtime/every.ts";
import { forRequest, type Log } from "../runtime/log.ts";
import { within } from "../runtime/repeat.ts";
import { CommandRunner } from "./command-runner.ts";
import { ConfirmationChecks } from "./confirmation-checks.ts";
import { STATION_LIMITS } from "./limits.ts";
import { LocalCommands, Mailboxes } from "./mailboxes.ts";
import type { HostMetrics } from "./metrics.ts";
import { type LogPlace, Ownership } from "./ownership.ts";
import { Partition, STATION_COMMAND } from "./partition.ts";
import { ProviderSaga } from "./provider-saga.ts";
import { LateWaits, type ScanDeps, scanHeartbeats, scanStations } from "./scan.ts";
import type { StationsSettings } from "./settings.ts";
import { SettlementSaga } from "./settlement-saga.ts";
import { type KnownStation, StateCache } from "./state-cache.ts";
import { StationLog } from "./station-log.ts";
import { StoredHeartbeats } from "./stored-heartbeats.ts";
import { UnknownAppends } from "./unknown-appends.ts";
import { Withdrawals } from "./withdrawals.ts";
import { UNAVAILABLE, type Work } from "./work.ts";

/**
 * On a cluster with several logs, each log stores its lease records, so that a lease can be renewed whenever its log can
 * store commits. Elsewhere the bucket LEASES stores them: on one server, renewals would hide that a log has lost its end.
 */
function leasePlaces({ leaseBus, logs }: Pick<HostDeps, "leaseBus" | "logs">): readonly LogPlace[] {
  const isInLogs = leaseBus.nc.info?.cluster !== undefined && logs.count > 1;
  if (isInLogs) return logs.all.map((log) => leasePlace(log, logs.partitionsOf(log)));
  const partitions = logs.all.flatMap((log) => logs.partitionsOf(log));
  return [{ stream: `KV_${LEASES.name}`, prefix: `$KV.${LEASES.name}.host.`, partitions }];
}

function leasePlace({ name, leases }: StationLogDefinition, partitions: readonly number[]): LogPlace {
  return { stream: name, prefix: `${leases}.`, partitions, removedForMs: STATION_LIMITS.removedForMs };
}

interface HostDeps {
  readonly bus: Bus;
  /** A connection only for leases: a server handles a connection in order, and a renewal must not wait for a read. */
  readonly leaseBus: Bus;
  /** A connection for reading whole streams, which takes the server seconds. */
  readonly scanBus: Bus;
  readonly log: Log;
  readonly logs: StationLogs;
  readonly hostId: string;
  readonly switches: SwitchesReplica;
  readonly settings: StationsSettings;
  readonly metrics: HostMetrics;
}

export class StationHost {
  readonly #deps: HostDeps;
  readonly #partitions = new Map<number, Partition>();
  readonly #cache = new StateCache();
  readonly #stationLog: StationLog;
  readonly #storedHeartbeats: StoredHeartbeats;
  readonly #mailboxes: Mailboxes;
  readonly #runner: CommandRunner;
  readonly #localCommands: LocalCommands;
  readonly #unknownAppends: UnknownAppends;
  readonly #confirmations: ConfirmationChecks;
  readonly #settlements: SettlementSaga;
  readonly #providers: ProviderSaga;
  readonly #withdrawals: Withdrawals;
  readonly #ownership: Ownership;
  readonly #scans = new AbortController();
  readonly #scanFailures: Failures;
  readonly #stopTicks: () => void;
  readonly #stopListening: () => void;
  /** By station: the sequence of the newest commit that came after a scan and may be of the previous host. */
  readonly #lateCommits = new Map<number, number>();
  readonly #lateWaits = new LateWaits();
  /** The server from which this host has read the known states. Each start of a server makes a new id. */
  #serverId: string | undefined;

  constructor(deps: HostDeps) {
    this.#deps = deps;
    this.#serverId = deps.bus.nc.info?.server_id;
    const { bus, log, settings, switches, metrics } = deps;
    this.#scanFailures = new Failures((...line) => log.warn(...line), "a scan has to be repeated");
    this.#stationLog = new StationLog(bus, deps.logs);
    this.#storedHeartbeats = new StoredHeartbeats(bus);
    this.#confirmations = new ConfirmationChecks({
      nc: bus.nc,
      log,
      tick: (stationId) => this.#partitions.get(partitionOf(stationId))?.check(stationId),
    });
    this.#runner = new CommandRunner({
      nc: bus.nc,
      clock: bus.clock,
      log,
      stationLog: this.#stationLog,
      cache: this.#cache,
      switches,
      settings: settings.machine,
      metrics,
      isServed: (stationId) => this.#isServed(stationId),
      isHeld: (stationId) => this.#partitions.has(partitionOf(stationId)),
      confirmations: this.#confirmations,
      onKnown: (stationId, known) => this.#observe(stationId, known),
      onUnknownAppend: (stationId, append) => this.#unknownAppends.watch(stationId, append),
    });
    this.#mailboxes = new Mailboxes((stationId, work) =>
      forRequest(work.requestId, () => this.#perform(stationId, work)),
    );
    this.#localCommands = new LocalCommands(this.#mailboxes);
    this.#unknownAppends = new UnknownAppends({
      log,
      localCommands: this.#localCommands,
      canAppend: (stationId) => bus.isUp() && this.#isServed(stationId),
      admit: (stationId) => this.#runner.admit(stationId),
    });
    this.#settlements = new SettlementSaga({ nc: bus.nc, log, mailboxes: this.#mailboxes, metrics });
    this.#withdrawals = new Withdrawals({ nc: bus.nc, log, mailboxes: this.#mailboxes });
    this.#providers = new ProviderSaga({ nc: bus.nc, log, mailboxes: this.#mailboxes, switches });
    this.#ownership = new Ownership(leasePlaces(deps), {
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
    this.#stopTicks = every(STATION_LIMITS.tickMs, () => this.#tick());
    this.#stopListening = bus.onChange((isUp) => this.#onBusChange(isUp));
  }

  async start(): Promise<void> {
    startLateCount(this.#deps.bus.nc, STATION_COMMAND);
    await this.#ownership.start();
    await this.#deps.bus.nc.flush();
  }

  /** Hands over all partitions and stops; takes less than 500 ms. */
  async stop(): Promise<void> {
    this.#scans.abort();
    this.#stopListening();
    this.#stopTicks();
    await this.#ownership.stop();
    this.#withdrawals.stop();
    this.#unknownAppends.stop();
    this.#stationLog.close();
  }

  /** The partitions that this host serves now. */
  owned(): ReadonlySet<number> {
    return new Set([...this.#partitions.keys()].filter((index) => this.#ownership.isCurrent(index)));
  }

  /** How many states are in memory. */
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
    return this.#settlements.oldestAgeMs(this.#deps.bus.clock.nowMs());
  }

  /** Commands refused because a queue was full. */
  busyRefusals(): Readonly<Record<"station" | "host", number>> {
    return this.#mailboxes.busyRefusals;
  }

  /** Partitions that some host serves, this one or another; undefined while no lease of this host is current. */
  partitionsOwned(): number | undefined {
    return this.#ownership.heldByAnyHost()?.size;
  }

  async #perform(stationId: number, work: Work): Promise<void> {
    const settling = await this.#runner.perform(stationId, work);
    if (settling === undefined || this.#settlements.await(stationId, settling)) return;
    // The attestation is in the log already, so the answer is not "busy", which would mean that nothing was done.
    settling.answer(UNAVAILABLE);
  }

  #isServed(stationId: number): boolean {
    const partition = partitionOf(stationId);
    return this.#ownership.isCurrent(partition) && this.#partitions.has(partition);
  }

  #observe(stationId: number, { state }: KnownStation): void {
    if (state === null) return;
    const partition = this.#partitions.get(partitionOf(stationId));
    // A command that ends after the release of its partition must leave no state in memory.
    if (partition === undefined) return this.#cache.delete(stationId);
    partition.observe(stationId, state);
    if (state.intent?.status === "settling") this.#settlements.start(stationId, state.intent);
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
          log: this.#deps.log,
          mailboxes: this.#mailboxes,
          localCommands: this.#localCommands,
          deviceSilenceMs: this.#deps.settings.machine.deviceSilenceMs,
          storedHeartbeats: this.#storedHeartbeats,
          isCurrent: () => this.#ownership.isCurrent(index),
        }),
      );
    }
    const opened = indexes.map((index) => this.#partitions.get(index)).filter((partition) => partition !== undefined);
    // Log by log: a log that does not answer must not delay the stations of the other logs.
    for (const [log, ofLog] of Map.groupBy(opened, ({ index }) => this.#deps.logs.ofPartition(index))) {
      void this.#retryScan("wake-ups", ofLog, async (stillHeld) => {
        await scanStations(this.#scanDeps(), log, stillHeld, this.#scans.signal);
        for (const index of stillHeld) this.#partitions.get(index)?.finishScan();
        await scanHeartbeats(this.#scanDeps(), stillHeld, this.#scans.signal);
        for (const index of stillHeld) this.#partitions.get(index)?.presence.detectSilence(true);
      });
    }
  }

  /** A planned hand-over: the host finishes what has arrived, then releases the partitions. */
  async #release(indexes: readonly number[]): Promise<void> {
    const { bus } = this.#deps;
    const released = new Set(indexes);
    const deadline = performance.now() + STATION_LIMITS.handOverMs;
    const drained = indexes.map(async (index) => await this.#partitions.get(index)?.drain());
    if (bus.isUp()) await within(Promise.all(drained), STATION_LIMITS.handOverMs);
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
      this.#settlements.abandon(index);
      this.#providers.abandon(index);
      this.#withdrawals.abandon(index);
      this.#unknownAppends.abandon(index);
      this.#confirmations.abandon(index);
      this.#cache.deletePartition(index);
    }
  }

  #isBusy(partitions: ReadonlySet<number>): boolean {
    return this.#mailboxes.isBusy(partitions) || this.#settlements.isBusy(partitions);
  }

  /**
   * After an outage the host reads the heartbeats again, because it may have missed some. A single server that was restarted
   * may have lost the newest commits, so the host also forgets all states. In a cluster the other servers have them.
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
    for (const partition of opened) partition.presence.detectSilence(false);
    if (!isUp) return;
    void this.#retryScan("heartbeats", opened, async (stillHeld) => {
      await scanHeartbeats(this.#scanDeps(), stillHeld, this.#scans.signal);
      for (const index of stillHeld) this.#partitions.get(index)?.presence.detectSilence(true);
    });
  }

  #scanDeps(): ScanDeps {
    return {
      bus: this.#deps.scanBus,
      log: this.#deps.log,
      logs: this.#deps.logs,
      partition: (index) => this.#partitions.get(index),
      lateWaits: this.#lateWaits,
      onLateCommit: (stationId, sequence) => void this.#lateCommits.set(stationId, sequence),
    };
  }

  /** Repeats a scan until it succeeds, for those of the partitions that are still the same. */
  async #retryScan(
    what: string,
    opened: readonly Partition[],
    scan: (stillHeld: readonly number[]) => Promise<void>,
  ): Promise<void> {
    const startedAtMs = performance.now();
    while (!this.#scans.signal.aborted) {
      const stillHeld = opened.filter((partition) => this.#partitions.get(partition.index) === partition);
      if (stillHeld.length === 0) return;
      try {
        await scan(stillHeld.map((partition) => partition.index));
        this.#deps.log.info(
          { what, partitions: stillHeld.length, tookMs: Math.round(performance.now() - startedAtMs) },
          "scanned",
        );
        return;
      } catch (error) {
        if (this.#scans.signal.aborted) return;
        this.#scanFailures.failed(error, { what });
        await new Promise((resolve) => setTimeout(resolve, STATION_LIMITS.scanRetryMs));
      }
    }
  }

  #tick(): void {
    const nowMs = this.#deps.bus.clock.nowMs();
    for (const [index, partition] of this.#partitions)
      if (partition.isDue(nowMs) && this.#ownership.isCurrent(index)) partition.tick(nowMs);
    this.#checkLateCommits();
    this.#cache.passivate(performance.now() - this.#deps.settings.passivateMs);
  }

  /**
   * Checks each station with a commit that was under way when the previous host released the partition, and was stored after
   * the scan: only this host can complete its collection. The cache has this host's commits when the station's work has ended.
   */
  #checkLateCommits(): void {
    for (const [stationId, sequence] of this.#lateCommits) {
      if (this.#mailboxes.isAtWork(stationId)) continue;
      this.#lateCommits.delete(stationId);
      const partition = this.#partitions.get(partitionOf(stationId));
      const knownSequence = this.#cache.get(stationId)?.sequence ?? 0;
      if (partition === undefined || knownSequence >= sequence) continue;
      this.#cache.delete(stationId);
      partition.check(stationId);
    }
  }
}
