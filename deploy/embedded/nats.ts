/** The embedded nats-server: its start, its configuration, and whether it can store messages. */
import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { UserError } from "../../services/runtime/user-error.ts";
import { makeFolder } from "../bootstrap/folders.mjs";
import { type Child, describeExit, startChild, stopLeftover, untilReady } from "../child.ts";
import { deployLimits } from "../limits.ts";
import { appendToLog, fileBytesOf, type LogSpec, logSize, logTail, trimLog } from "../log-files.ts";
import { freePort } from "../ports.ts";
import type { NatsBinary } from "./find-nats-server.ts";

interface NatsOptions extends LogSpec {
  binary: NatsBinary;
  /** Holds the configuration, the pid file and JetStream's files; made when missing. */
  folder: string;
  /** Clients must present it. */
  token: string;
  /** This port instead of a free one, so that a restarted server listens where its clients reconnect. */
  port?: number | undefined;
  /** When it is aborted while the server starts, the server is ended again. */
  stopping?: AbortSignal;
}

/** A running nats-server with JetStream on 127.0.0.1. */
export interface NatsServer {
  /** `nats://<token>@127.0.0.1:<port>` */
  url: string;
  port: number;
  version: string;
  /** Where it reports whether it can store messages. */
  healthUrl: string;
  child: Child;
}

/** Starts nats-server and waits until it answers. Throws UserError `nats_start_failed`, `…_stopped` or `…_timeout`. */
export async function startNats(options: NatsOptions): Promise<NatsServer> {
  const { folder, logFile, token, binary, stopping } = options;
  makeFolder(folder, 0o700);
  const configFile = join(folder, "nats-server.conf");
  const pidFile = join(folder, "nats-server.pid");
  await stopLeftover({ pidFile, marker: configFile });
  const port = options.port ?? (await freePort());
  const monitor = { port: await freePort(), path: randomBytes(MONITOR_PATH_BYTES).toString("hex") };
  writeFileSync(configFile, configuration({ ...options, port, monitor, pidFile }), { mode: 0o600 });

  trimLog(options);
  const logStart = logSize(logFile);
  const child = await startChild({
    command: binary.path,
    args: ["--config", configFile],
    spawn: { cwd: folder },
    stopSignal: "SIGINT",
    stopMs: deployLimits.natsStopMs,
    orphanSignal: "INT",
  });
  void child.exited.then(() => rmSync(pidFile, { force: true }));
  // nats-server writes and rotates its log itself. What it still prints is the reason why it could not open the log.
  const printed = child.output.logged.then(() => {
    const text = child.output.tail();
    if (text !== "") appendToLog(options, text);
    return text;
  });

  const exit = await untilReady(child, {
    name: "nats-server",
    code: "nats_start",
    logFile,
    timeoutMs: deployLimits.natsReadyMs,
    stopping,
    isReady: (signal) => greetsAsNats("127.0.0.1", port, signal),
  });
  if (exit !== undefined) {
    const reason = failure(await printed) ?? failure(logTail(logFile, logStart)) ?? describeExit(exit);
    throw new UserError(`nats-server did not start: ${reason}; its log is ${logFile}.`, { code: "nats_start_failed" });
  }
  return {
    url: `nats://${token}@127.0.0.1:${port}`,
    port,
    version: binary.version,
    healthUrl: `http://127.0.0.1:${monitor.port}/${monitor.path}/healthz`,
    child,
  };
}

/** The path of the monitoring port is a secret: the port needs no token, and other users of the machine can reach it. */
const MONITOR_PATH_BYTES = 16;

interface Configured extends NatsOptions {
  port: number;
  monitor: { port: number; path: string };
  pidFile: string;
}

function configuration(options: Configured): string {
  // Without `always`, a power cut loses messages that were acknowledged in the last two minutes. Without `max_file_store`,
  // a server that starts on a nearly full disk takes three quarters of the free space as its limit, and refuses every
  // message, even later when there is space. So only the disk limits it.
  return `# Written at each start.
listen: "127.0.0.1:${options.port}"
http: "127.0.0.1:${options.monitor.port}"
http_base_path: ${JSON.stringify(`/${options.monitor.path}`)}
pid_file: ${JSON.stringify(options.pidFile)}
authorization { token: ${JSON.stringify(options.token)} }
log_file: ${JSON.stringify(options.logFile)}
logfile_size_limit: ${fileBytesOf(options)}
logfile_max_num: ${deployLimits.logFiles}
jetstream {
  store_dir: ${JSON.stringify(options.folder)}
  sync_interval: always
  max_file_store: 1PB
}
`;
}

/** nats-server's text of the reason: its last line that is marked as fatal or as an error. */
function failure(log: string): string | undefined {
  const lines = log.split("\n").filter((line) => /\[(FTL|ERR)\]/.test(line) || line.startsWith("nats-server:"));
  return lines
    .at(-1)
    ?.replace(/^.*\[(FTL|ERR)\] |^nats-server: /, "")
    .trim()
    .replace(/\.$/, "");
}

/** Whether a NATS server greets on that address. */
export function greetsAsNats(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, signal });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("data", (greeting) => end(greeting.toString("latin1").startsWith("INFO ")));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
  });
}

const healthSchema = z.looseObject({ status: z.string(), error: z.string().optional() });

/**
 * Checks every second whether nats-server can store messages. After a full disk it keeps running and greets its clients,
 * but refuses or loses every message until it is started again. Resolves to the server's text of the reason when it has
 * reported several times in a row that it cannot store, or to undefined when the signal is aborted. A server that does not
 * answer may be busy or stopped; its clients notice that themselves.
 */
export async function untilUnhealthy(healthUrl: string, signal: AbortSignal): Promise<string | undefined> {
  for (let failures = 0; !signal.aborted; ) {
    await delay(deployLimits.natsHealthMs, undefined, { signal }).catch(() => undefined);
    const reason = await faultOf(healthUrl, signal);
    failures = reason === undefined ? 0 : failures + 1;
    if (reason !== undefined && failures >= deployLimits.natsHealthFailures) return reason;
  }
  return undefined;
}

async function faultOf(healthUrl: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const response = await fetch(healthUrl, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(deployLimits.natsHealthMs)]),
    });
    const health = healthSchema.safeParse(await response.json());
    if (response.ok || !health.success) return undefined;
    return health.data.error ?? health.data.status;
  } catch {
    return undefined;
  }
}
