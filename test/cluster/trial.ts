/** A trial: stations work on a cluster while one fault follows another. Then the judge compares all records. */
import { setTimeout as delay } from "node:timers/promises";
import { Random } from "../chaos/random.ts";
import { AuditCopyWatch, COPIED_WITHIN_MS } from "./audit-copy-watch.ts";
import { addCanaries, type Canary, watchCanary } from "./canaries.ts";
import type { ClusterWorld } from "./cluster-world.ts";
import type { Draw } from "./faults.ts";
import { History, NO_STATION } from "./history.ts";
import { type Judgement, judge } from "./judge.ts";
import { allFollow, allStreams } from "./leaders.ts";
import {
  type FaultResult,
  isCommand,
  isPoll,
  lateness,
  outagesOf,
  resultUntilAwake,
  SLOW_MS,
  slowness,
  waitedMs,
} from "./outages.ts";
import { Pace } from "./pace.ts";
import { judgeQrs } from "./qr-judge.ts";
import { startRobotWork } from "./robot-work.ts";
import type { SideWork } from "./side-work.ts";
import { staleAnswers } from "./stale-answers.ts";
import { startStatementWork } from "./statement-work.ts";
import { StationDriver } from "./station-driver.ts";

export interface TrialOptions {
  readonly seed: number;
  /** The faults, in order. */
  readonly draws: readonly Draw[];
  /** Whether the stations adapt their pace to this machine. Beside other tests they do not. */
  readonly fitsMachine: boolean;
  /** Called with each line of the table as it is known. */
  readonly print: (line: string) => void;
}

export interface TrialResult extends Judgement {
  readonly faults: readonly FaultResult[];
  readonly history: History;
  readonly stale: readonly string[];
  /** Outages that were too long, and deaths that too many stations noticed. */
  readonly late: readonly string[];
  /** Answers that were slower than their fault allows. */
  readonly slow: readonly string[];
}

/** All stations must work quickly for this time before the first fault and after each fault, so that no outage counts twice. */
const CALM_MS = 4_000;
/** The longest time from the end of a fault to quick work at every station. */
const RECOVERED_WITHIN_MS = 90_000;
const POLL_MS = 200;
/** How long the trial measures its control, before the first fault and after the last one: as long as a fault takes. */
const CONTROL_MS = 20_000;
/** How long the log's copy may take at the end. After a long trial on a busy machine one judgement takes a minute. */
const JUDGED_WITHIN_MS = 60_000;
const LEAST_JUDGEMENTS = 3;

/** Runs a trial with all stations of the world. */
export async function runTrial(
  world: ClusterWorld,
  { seed, draws, fitsMachine, print }: TrialOptions,
): Promise<TrialResult> {
  const random = new Random(seed);
  const history = new History();
  const pace = new Pace();
  const drivers = world.stations.map(
    (station, index) => new StationDriver(world, station, history, new Random(seed + 1 + index), pace),
  );
  const sideWorks = await startSideWork(world, history, pace);
  const work = Promise.all([...drivers, ...sideWorks].map((one) => one.run()));
  work.catch(() => undefined);
  const copyWatch = new AuditCopyWatch(world);
  const watchingCopy = copyWatch.run();
  const results: FaultResult[] = [];
  /** The results up to the moment when a target wakes. */
  const untilAwake: FaultResult[] = [];
  const late: string[] = [];
  const stale: string[] = [];
  const canaries = await addCanaries(world, draws.length);
  if (fitsMachine) print(await pace.fitToMachine());
  print("| fault | target | commands ms | displays ms | at most | slowest ms | stations | wrong errors |");
  print("| --- | --- | --- | --- | --- | --- | --- | --- |");
  await delay(CALM_MS);
  if (fitsMachine) print(await controlRow(history));
  for (const [index, draw] of draws.entries()) {
    const fault = await draw(world, random);
    history.beginFault(fault);
    const fromMs = performance.now();
    const wrongBefore = history.wrongErrors.length;
    const over = new AbortController();
    const watched = watchCanary(world, canaries[index] as Canary, over.signal);
    let awakeAtMs: number | undefined;
    const onAwake = (): void => void (awakeAtMs = performance.now());
    await fault.run(onAwake).catch((cause: unknown) => {
      throw new Error(`The fault "${fault.name}" (${fault.target}) could not be ended.`, { cause });
    });
    await calm(world, history);
    const toMs = performance.now();
    over.abort();
    stale.push(...(await watched));
    const { name, target, withinMs, isDeath = false, failsNothing = false } = fault;
    const wrongErrors = history.wrongErrors.length - wrongBefore;
    const result = { name, target, withinMs, isDeath, failsNothing, wrongErrors, ...outagesOf(history, fromMs, toMs) };
    results.push(result);
    print(rowOf(result));
    const copyMs = copyWatch.longestMs(fromMs, toMs);
    const { copyWithinMs = withinMs + COPIED_WITHIN_MS } = fault;
    late.push(...lateness(result, world.stations.length));
    if (fault.untilAwakeWithinMs !== undefined && awakeAtMs !== undefined) {
      const until = { fromMs, awakeAtMs, withinMs: fault.untilAwakeWithinMs };
      const away = resultUntilAwake(result, history, until);
      print(`${away.name}: ${away.commandOutageMs} ms and ${away.pollOutageMs} ms of at most ${away.withinMs} ms`);
      late.push(...lateness(away, world.stations.length));
      untilAwake.push(away);
    }
    if (copyMs > copyWithinMs)
      late.push(`${name} (${target}): an entry waited ${copyMs} ms for its audit copy instead of ${copyWithinMs} ms.`);
  }
  if (fitsMachine) print(await controlRow(history));
  for (const one of [...drivers, ...sideWorks]) one.stop();
  await work;
  print(`an entry waited at most ${copyWatch.longestMs(0, performance.now())} ms for its audit copy`);
  copyWatch.stop();
  await watchingCopy;
  stale.push(...staleAnswers(history));
  const judgement = await settled(world, history);
  const lost = [...judgement.lost];
  for (const one of sideWorks) {
    const { sentences, summary } = await one.judge();
    lost.push(...sentences);
    print(summary);
  }
  const qrs = judgeQrs(history);
  print(qrs.summary);
  const stuck = [...judgement.stuck, ...qrs.unpaid];
  const slow = [...[...results, ...untilAwake].flatMap(slowness), ...qrs.late];
  return { ...judgement, lost, stuck, faults: results, history, stale, late, slow };
}

/** Starts the other work for which the world has processes. */
async function startSideWork(world: ClusterWorld, history: History, pace: Pace): Promise<readonly SideWork[]> {
  const works: SideWork[] = [];
  if (world.receiver !== undefined)
    works.push(await startRobotWork(world, history, { receiver: world.receiver, pace }));
  if (world.provider !== undefined && world.kinds.includes("reconciliation"))
    works.push(await startStatementWork(world, history, pace));
  return works;
}

/** The row of the control. While nothing fails, all that the clients measure is due to this machine. */
async function controlRow(history: History): Promise<string> {
  const fromMs = performance.now();
  await delay(CONTROL_MS);
  const outages = outagesOf(history, fromMs, performance.now());
  return rowOf({
    ...outages,
    name: `no fault, for ${CONTROL_MS / 1_000} s`,
    target: "control",
    withinMs: "",
    wrongErrors: 0,
  });
}

type Row = Omit<FaultResult, "withinMs" | "failsNothing" | "isDeath"> & { readonly withinMs: number | "" };

function rowOf({ name, target, withinMs, slowest, wrongErrors, ...result }: Row): string {
  const { commandOutageMs, pollOutageMs, stationsWithGap } = result;
  const slow = slowest === undefined ? "" : `${Math.round(waitedMs(slowest))} (${slowest.step})`;
  return `| ${[name, target, commandOutageMs, pollOutageMs, withinMs, slow, stationsWithGap, wrongErrors].join(" | ")} |`;
}

/**
 * Resolves when every copy follows its leader and all stations have worked quickly for some seconds after that, or at the
 * deadline. A server that returns can cause a second election of a log, which belongs to this fault and not to the next one.
 */
async function calm(world: ClusterWorld, history: History): Promise<void> {
  const deadlineMs = performance.now() + RECOVERED_WITHIN_MS;
  await workAgain(world, history, deadlineMs);
  await allFollow(world.bus, allStreams(world.logs));
  while (performance.now() < deadlineMs) {
    const sinceMs = performance.now();
    await delay(CALM_MS);
    await workAgain(world, history, deadlineMs);
    if (!history.steps.some((step) => step.endedAtMs >= sinceMs && waitedMs(step) > SLOW_MS)) return;
  }
}

/** Resolves when each station has an answer to a command and to a poll that begin after this call, or at the deadline. */
async function workAgain({ stations }: ClusterWorld, { steps }: History, deadlineMs: number): Promise<void> {
  const sinceMs = performance.now();
  const works = (isOfKind: (step: string) => boolean): boolean => {
    const done = new Set<number>();
    for (let index = steps.length - 1; index >= 0; index -= 1) {
      const step = steps[index];
      if (step === undefined || step.endedAtMs < sinceMs) break;
      if (step.startedAtMs >= sinceMs && step.stationId !== NO_STATION && isOfKind(step.step)) done.add(step.stationId);
    }
    return done.size === stations.length;
  };
  while (performance.now() < deadlineMs && !(works(isCommand) && works(isPoll))) await delay(POLL_MS);
}

/** Judges the trial once the copy of the log is complete, or at the deadline. */
async function settled(world: ClusterWorld, history: History): Promise<Judgement> {
  const deadlineMs = performance.now() + JUDGED_WITHIN_MS;
  for (let count = 1; ; count += 1) {
    const isLast = (): boolean => count >= LEAST_JUDGEMENTS && performance.now() > deadlineMs;
    // The election of the last fault may still be under way.
    const judgement = await judge(world, history).catch((error: unknown) => {
      if (isLast()) throw error;
    });
    if (judgement?.lost.length === 0 || (judgement !== undefined && isLast())) return judgement;
    await delay(1_000);
  }
}
