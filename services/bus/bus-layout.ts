/** The facts of a bus that all processes share. `migrate` writes them into the metadata of each stream and bucket. */

export interface BusLayout {
  /** Copies of each stream. */
  readonly replicas: number;
}

/** The version of this program's streams and buckets; a change of their definitions raises it. */
export const LAYOUT_VERSION = 1;

const KEYS = { version: "device-payments-layout", replicas: "device-payments-replicas" } as const;

/** As the metadata of a stream. */
export function metadataOf(layout: BusLayout): Readonly<Record<string, string>> {
  return { [KEYS.version]: String(LAYOUT_VERSION), [KEYS.replicas]: String(layout.replicas) };
}

export interface MigratedLayout extends BusLayout {
  readonly version: number;
}

/** Undefined for a stream that `migrate` has not written. */
export function layoutOf(metadata: Readonly<Record<string, string>> | undefined): MigratedLayout | undefined {
  const [version, replicas] = [KEYS.version, KEYS.replicas].map((key) => Number(metadata?.[key]));
  if (!Number.isInteger(version) || !Number.isInteger(replicas)) return undefined;
  return { version: version as number, replicas: replicas as number };
}
