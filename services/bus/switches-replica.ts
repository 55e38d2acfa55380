/** A replica of the kill switches that are on, from the bucket SWITCHES. Each actor host and each gateway has one. */
import type { KillSwitches } from "../../machines/standing.ts";
import type { LineLog } from "../runtime/log.ts";
import { bucketBeats } from "./beats.ts";
import { BucketCompleteness } from "./bucket-completeness.ts";
import type { Bus } from "./connection.ts";
import { type FeedMessage, openFeed } from "./feed.ts";
import { SequenceWait } from "./sequence-wait.ts";
import { SWITCHES } from "./streams.ts";

/**
 * The prefix of the bucket's keys: `platform`, `organization.<id>`, `station.<id>`, `device.<id>`, `provider.<config
 * id>`. A key that is present is a switch that is on. The relay's completeness notices have other keys of the bucket.
 */
const PREFIX = `$KV.${SWITCHES.name}.`;

/**
 * A feed that is older may have missed a switch that must be effective by now (design §5). Then the gateway answers no
 * device, and a host offers only cash.
 */
const TRUSTED_FOR_MS = 1_500;

export interface SwitchesReplica {
  /** A new object after each change, so that a caller may keep and compare it. */
  current(): KillSwitches;
  /** The revision of the bucket that `current` shows. */
  revision(): number;
  /** Resolves true once `current` shows the bucket at this revision, false when `timeoutMs` passes first. */
  waitFor(revision: number, timeoutMs: number): Promise<boolean>;
  /** `current` is certainly complete up to this long ago, by one of the two proofs of its feed. */
  ageMs(): number;
  /**
   * False while a switch may be on that `current` lacks: the feed is too old, is behind, or has just started over, or
   * the bucket may be incomplete.
   */
  isTrusted(): boolean;
  /** Resolves true once `current` has every change that was stored before this call, false without a proof in time. */
  prove(): Promise<boolean>;
  /** Whether the relay has noted that the bucket is complete (`bucket-completeness.ts`). */
  isBucketComplete(): boolean;
  onChange(listener: (switches: KillSwitches) => void): void;
  stop(): void;
}

/** Resolves when the replica has read the whole bucket. `isTrusted` is false while there may be more. */
export async function followSwitches(bus: Bus, log: LineLog): Promise<SwitchesReplica> {
  const on = new Set<string>();
  const listeners = new Set<(switches: KillSwitches) => void>();
  let current = toKillSwitches(on);
  const revision = new SequenceWait();
  let startedOverAtMs = Number.NEGATIVE_INFINITY;
  const completeness = new BucketCompleteness(bus, SWITCHES);
  const rebuild = (): void => {
    current = toKillSwitches(on);
    for (const listener of listeners) listener(current);
  };
  const receive = (message: FeedMessage): void => {
    if (!completeness.take(message)) {
      const key = message.subject.slice(PREFIX.length);
      const operation = message.headers?.get("KV-Operation") ?? "";
      const isOff = operation === "DEL" || operation === "PURGE";
      if (isOff ? on.delete(key) : !on.has(key) && on.add(key)) rebuild();
    }
    revision.reached(message.sequence);
  };
  const feed = openFeed(bus, {
    stream: `KV_${SWITCHES.name}`,
    filter: `${PREFIX}>`,
    beats: bucketBeats(SWITCHES),
    isOfRelay: true,
    keepsOnlyNewest: true,
    onMessage: receive,
    onReset: () => {
      startedOverAtMs = performance.now();
      completeness.reset();
      on.clear();
      revision.reached(0);
      rebuild();
    },
    log,
  });
  await feed.caughtUp;
  return {
    current: () => current,
    revision: () => revision.sequence,
    waitFor: (sequence, timeoutMs) => revision.waitFor(sequence, timeoutMs),
    ageMs: () => Math.min(feed.ageMs(), feed.deliveredAgeMs()),
    isTrusted: () => {
      const ageMs = feed.ageMs();
      // Only a message after the new start shows how much the feed has yet to read.
      const isBegun = performance.now() - ageMs > startedOverAtMs;
      const isCurrent = ageMs <= TRUSTED_FOR_MS && isBegun && feed.behind() === 0;
      return (isCurrent || feed.deliveredAgeMs() <= TRUSTED_FOR_MS) && completeness.isComplete();
    },
    prove: () => feed.prove(),
    isBucketComplete: () => completeness.isComplete(),
    onChange: (listener) => listeners.add(listener),
    stop: () => feed.stop(),
  };
}

function toKillSwitches(keys: ReadonlySet<string>): KillSwitches {
  const idsOf = (kind: string): ReadonlySet<number> =>
    new Set([...keys].filter((key) => key.startsWith(`${kind}.`)).map((key) => Number(key.slice(kind.length + 1))));
  return {
    platform: keys.has("platform"),
    organizations: idsOf("organization"),
    stations: idsOf("station"),
    devices: idsOf("device"),
    providers: idsOf("provider"),
  };
}
