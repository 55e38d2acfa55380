/**
 * The server configuration of the streams and buckets of `streams.ts`, and its differences from an existing stream.
 * `migrate` writes the layout, which all processes share, into the metadata of each stream.
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
export const LAYOUT_VERSION = 5;

const KEYS = {
  version: "device-payments-layout",
  replicas: "device-payments-replicas",
  logs: "device-payments-logs",
} as const;

/** The metadata of a stream. */
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

/** All streams and buckets of a bus. The first is the bucket with the installation's id. */
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

/**
 * A bucket is a stream by the key-value convention of NATS. As a stream config it has the same check and update as the
 * streams.
 */
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

/** An object store is a stream by convention, too. */
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

/** The name of the first setting that differs from the wanted one; undefined when none does. */
export function firstDifference(known: StreamConfig, wanted: WantedConfig): string | undefined {
  for (const [key, value] of Object.entries(wanted)) {
    const current = known[key as keyof StreamConfig];
    if (key === "metadata") {
      // The server adds its own entries to the metadata.
      const now = (current ?? {}) as Record<string, string>;
      if (Object.entries(value as Record<string, string>).some(([name, text]) => now[name] !== text)) return key;
    } else if (typeof value === "object" ? JSON.stringify(current) !== JSON.stringify(value) : current !== value) {
      return key;
    }
  }
  return undefined;
}
