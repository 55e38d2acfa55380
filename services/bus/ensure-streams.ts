/** Makes the streams and buckets of `streams.ts` exist as defined. */
import {
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "nats";
import { UserError } from "../runtime/user-error.ts";
import type { Bus } from "./connection.ts";
import { BUCKETS, type BucketDefinition, STREAMS, type StreamDefinition } from "./streams.ts";

/** Creates or updates everything. Throws UserError `nats_storage` with a sentence that says why. */
export async function ensureStreams(bus: Bus, options: { readonly replicas: number }): Promise<void> {
  for (const stream of STREAMS) await ensure(bus, streamConfig(stream, options.replicas));
  for (const bucket of BUCKETS) await ensureBucket(bus, bucket, options);
}

/** Creates or updates one bucket. Throws UserError `nats_storage`. */
export async function ensureBucket(
  bus: Bus,
  bucket: BucketDefinition,
  options: { readonly replicas: number },
): Promise<void> {
  await ensure(bus, bucketConfig(bucket, options.replicas));
}

type Config = Partial<StreamConfig> & { readonly name: string };

function streamConfig(definition: StreamDefinition, replicas: number): Config {
  const { name, subjects } = definition;
  const common = { name, subjects: [...subjects], storage: StorageType.File, num_replicas: replicas };
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
function bucketConfig(definition: BucketDefinition, replicas: number): Config {
  const { name, history, maxAgeMs } = definition;
  return {
    name: `KV_${name}`,
    subjects: [`$KV.${name}.>`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_msgs_per_subject: history,
    max_age: nanos(maxAgeMs),
    num_replicas: replicas,
    allow_direct: true,
    allow_rollup_hdrs: true,
    deny_delete: true,
  };
}

async function ensure(bus: Bus, config: Config): Promise<void> {
  try {
    const known = await bus.jsm.streams.info(config.name).catch((error: unknown) => {
      if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) return undefined;
      throw error;
    });
    if (known === undefined) await bus.jsm.streams.add(config);
    else if (differs(known.config, config)) await bus.jsm.streams.update(config.name, config);
  } catch (cause) {
    if (!(cause instanceof JetStreamApiError)) throw cause;
    throw new UserError(`The NATS server cannot keep the stream ${config.name}: ${cause.message}.`, {
      code: "nats_storage",
      cause,
    });
  }
}

/** Updating an unchanged stream would write its description to disk at each start. */
function differs(known: StreamConfig, wanted: Config): boolean {
  return Object.entries(wanted).some(([key, value]) => {
    const now = known[key as keyof StreamConfig];
    return typeof value === "object" ? JSON.stringify(now) !== JSON.stringify(value) : now !== value;
  });
}
