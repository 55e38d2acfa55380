import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { QUIET } from "./quiet-log.ts";
import { startNats, type TestServer } from "./servers.ts";

export interface TestBus {
  readonly nats: TestServer;
  readonly bus: Bus;
  /** Closes the connection and stops the server. */
  readonly stop: () => Promise<void>;
}

/** A nats-server with a connection to it. */
export async function startBus(): Promise<TestBus> {
  const nats = await startNats();
  const bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
  return {
    nats,
    bus,
    stop: async () => {
      await bus.close();
      await nats.stop();
    },
  };
}

/** The same, with all streams and buckets. */
export async function startPreparedBus(): Promise<TestBus> {
  const started = await startBus();
  await ensureStreams(started.bus, { replicas: 1, logs: 1 });
  return started;
}
