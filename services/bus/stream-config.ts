/**
 * The streams and buckets of `streams.ts` as the server's configuration, and how an existing stream differs from it. `migrate`
 * writes the facts that all processes share, the layout, into the metadata of each.
 */
import { DiscardPolicy, RetentionPolicy, StorageType, type StreamConfig } from "@nats-io/jetstream";
import { nanos } from "nats";
import {
  BUCKETS,
  type BucketDefinition,
  type FileBucketDefinition,
  INSTALLATION,
  STATEMENT_FILES,
  STREAMS,
  StationLogs,
  type StreamDefinition,
} from "./streams.ts";

export interface BusLayout {
  /** Copies of each stream. */
  readonly replicas: number;
  /** The number of the stations' logs; it never changes. */
  readonly logs: number;
}

/** The version of this program's streams and buckets; a change of their definitions raises it. */
export const LAYOUT_VERSION = 4;

const KEYS = {
  version: "device-payments-layout",
  replicas: "device-payments-replicas",
  logs: "device-payments-logs",
} as const;

/** As the metadata of a stream. */
function metadataOf(layout: BusLayout): Readonly<Record<string, string>> {
  return {
    [KEYS.version]: String(LAYOUT_VERSION),
    [KEYS.replicas]: String(layout.replicas),
    [KEYS.logs]: String(layout.logs),
  };
}

export interface MigratedLayout extends BusLayout {
  readonly version: number;
}

/** Undefined for a stream that `migrate` has not written. */
export function layoutOf(metadata: Readonly<Record<string, string>> | undefined): MigratedLayout | undefined {
  const numbers = [KEYS.version, KEYS.replicas, KEYS.logs].map((key) => Number(metadata?.[key]));
  const [version = 0, replicas = 0, logs = 0] = numbers;
  return numbers.every((number) => Number.isInteger(number) && number > 0) ? { version, replicas, logs } : undefined;
}

export type WantedConfig = Partial<StreamConfig> & { readonly name: string };

/** All streams and buckets of a bus; first the bucket that says to which installation it belongs. */
export function wantedConfigs(layout: BusLayout): readonly [WantedConfig, ...WantedConfig[]] {
  const others = BUCKETS.filter((bucket) => bucket !== INSTALLATION);
  return [
    bucketConfig(INSTALLATION, layout),
    ...[...new StationLogs(layout.logs).all, ...STREAMS].map((stream) => streamConfig(stream, layout)),
    ...others.map((bucket) => bucketConfig(bucket, layout)),
    fileBucketConfig(STATEMENT_FILES, layout),
  ];
}

function streamConfig(definition: StreamDefinition, layout: BusLayout): WantedConfig {
  const { name, subjects } = definition;
  const common = {
    name,
    subjects: [...subjects],
    storage: StorageType.File,
    num_replicas: layout.replicas,
    metadata: { ...metadataOf(layout) },
  };
  if (definition.keeps === "undone") {
    return {
      ...common,
      retention: RetentionPolicy.Workqueue,
      discard: DiscardPolicy.New,
      max_msgs: definition.maxMessages,
    };
  }
  const { maxMessagesPerSubject, republish } = definition;
  return {
    ...common,
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    max_msgs_per_subject: maxMessagesPerSubject,
    allow_direct: true,
    ...(republish === undefined ? {} : { republish: { src: republish.source, dest: republish.destination } }),
  };
}

/** A bucket is a stream by the key-value convention; making it here puts all of them under one check and one update. */
function bucketConfig(definition: BucketDefinition, layout: BusLayout): WantedConfig {
  const { name, history, maxAgeMs } = definition;
  return {
    name: `KV_${name}`,
    subjects: [`$KV.${name}.>`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_msgs_per_subject: history,
    max_age: nanos(maxAgeMs),
    num_replicas: layout.replicas,
    metadata: { ...metadataOf(layout) },
    allow_direct: true,
    allow_rollup_hdrs: true,
    deny_delete: true,
  };
}

/** An object store is a stream by convention too. */
function fileBucketConfig({ name, maxAgeMs, maxMessages }: FileBucketDefinition, layout: BusLayout): WantedConfig {
  return {
    name: `OBJ_${name}`,
    subjects: [`$O.${name}.C.>`, `$O.${name}.M.>`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_age: nanos(maxAgeMs),
    max_msgs: maxMessages,
    num_replicas: layout.replicas,
    metadata: { ...metadataOf(layout) },
    allow_direct: true,
    allow_rollup_hdrs: true,
  };
}

/** The first setting of the stream that is not as wanted; undefined when all are. */
export function firstDifference(known: StreamConfig, wanted: WantedConfig): string | undefined {
  for (const [key, value] of Object.entries(wanted)) {
    const current = known[key as keyof StreamConfig];
    if (key === "metadata") {
      // The server keeps facts of its own there.
      const now = (current ?? {}) as Record<string, string>;
      if (Object.entries(value as Record<string, string>).some(([name, text]) => now[name] !== text)) return key;
    } else if (typeof value === "object" ? JSON.stringify(current) !== JSON.stringify(value) : current !== value) {
      return key;
    }
  }
  return undefined;
}
