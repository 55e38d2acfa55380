/** Watches whether the bus has all streams and buckets: one may be deleted by mistake, and only `migrate` makes it again. */
import { missingStreams } from "../bus/ensure-streams.ts";
import { repeat } from "../runtime/repeat.ts";
import type { RelayDeps } from "./deps.ts";
import { RELAY_LIMITS } from "./limits.ts";

interface StreamWatch {
  /** How many streams and buckets the bus lacks, as of the last check that it answered. */
  missingCount(): number;
  stop(): Promise<void>;
}

export function watchStreams({ bus, logs, log }: Pick<RelayDeps, "bus" | "logs" | "log">): StreamWatch {
  let missing: readonly string[] = [];
  const watching = repeat({ everyMs: RELAY_LIMITS.streamsCheckMs, what: "listing the streams", log }, async () => {
    if (!bus.hasQuorum()) return;
    const found = await missingStreams(bus, logs.count);
    if (String(found) === String(missing)) return;
    missing = found;
    if (found.length === 0) log.info({}, "the bus has all its streams again");
    else log.error({ streams: found }, "the bus lacks streams: run `npm run migrate`");
  });
  return { missingCount: () => missing.length, stop: () => watching.stop() };
}
