/** The facts of a bus that all processes share. `migrate` writes them into the metadata of each stream and bucket. */

export interface BusLayout {
  /** Copies of each stream. */
  readonly replicas: number;
  /** The number of the stations' logs; it never changes. */
  readonly logs: number;
}

/** The version of this program's streams and buckets; a change of their definitions raises it. */
export const LAYOUT_VERSION = 2;

const KEYS = {
  version: "device-payments-layout",
  replicas: "device-payments-replicas",
  logs: "device-payments-logs",
} as const;

/** As the metadata of a stream. */
export function metadataOf(layout: BusLayout): Readonly<Record<string, string>> {
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
