import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { UserError } from "../../services/runtime/user-error.ts";
import { type Child, describeExit, startChild } from "../child.ts";
import { deployLimits } from "../limits.ts";
import { appendToLog, fileBytesOf, type LogSpec, logSize, logTail, trimLog } from "../log-files.ts";
import type { NatsBinary } from "./find-nats-server.ts";
import { freePort } from "./free-port.ts";
import { stopLeftover } from "./leftover.ts";

export interface NatsOptions extends LogSpec {
  binary: NatsBinary;
  /** Holds the configuration, the pid file and JetStream's files; made when missing. */
  folder: string;
  /** Clients must present it. */
  token: string;
  /** A given port instead of a free one, to come back where clients redial. */
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
  /** Where it says whether it can store messages. */
  healthUrl: string;
  child: Child;
}

/** Starts nats-server and waits until it answers. Throws UserError `nats_start_failed` or `nats_start_timeout`. */
export async function startNats(options: NatsOptions): Promise<NatsServer> {
  mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  const configFile = join(options.folder, "nats-server.conf");
  const pidFile = join(options.folder, "nats-server.pid");
  await stopLeftover({ pidFile, marker: configFile });
  const port = options.port ?? (await freePort());
  const monitor = { port: await freePort(), path: randomBytes(MONITOR_PATH_BYTES).toString("hex") };
  writeFileSync(configFile, configuration({ ...options, port, monitor, pidFile }), { mode: 0o600 });

  const { logFile } = options;
  trimLog(options);
  const logStart = logSize(logFile);
  const child = await startChild({
    command: options.binary.path,
    args: ["--config", configFile],
    spawn: { cwd: options.folder },
    stopSignal: "SIGINT",
    stopMs: deployLimits.natsStopMs,
    orphanSignal: "INT",
  });
  void child.exited.then(() => rmSync(pidFile, { force: true }));
  // It writes and rotates its log itself, so that it needs no reader. What it prints is why it could not even do that.
  const printed = child.output.kept.then(() => {
    const text = child.output.tail();
    if (text !== "") appendToLog(options, text);
    return text;
  });

  const ended = new AbortController();
  void child.exited.then(() => ended.abort());
  const signal = AbortSignal.any([ended.signal, ...(options.stopping === undefined ? [] : [options.stopping])]);
  const answers = waitForNats("127.0.0.1", port, { timeoutMs: deployLimits.natsReadyMs, signal });
  const ready = await Promise.race([child.exited, answers]);
  if (ready === true) {
    return {
      url: `nats://${options.token}@127.0.0.1:${port}`,
      port,
      version: options.binary.version,
      healthUrl: `http://127.0.0.1:${monitor.port}/${monitor.path}/healthz`,
      child,
    };
  }
  if (ready !== false) {
    const reason = failure(await printed) ?? failure(logTail(logFile, logStart)) ?? describeExit(ready);
    throw new UserError(`nats-server did not start: ${reason}; its log is ${logFile}.`, {
      code: "nats_start_failed",
    });
  }
  if (options.stopping?.aborted === true) {
    await child.stop();
    throw new UserError("nats-server was stopped while starting.", { code: "nats_start_stopped" });
  }
  await child.kill();
  throw new UserError(
    `nats-server did not answer within ${deployLimits.natsReadyMs / 1000} s; its log is ${logFile}.`,
    { code: "nats_start_timeout" },
  );
}

/** The path of the monitoring port is a secret: what is behind it needs no token, and other users are on this machine. */
const MONITOR_PATH_BYTES = 16;

interface Configured extends NatsOptions {
  port: number;
  monitor: { port: number; path: string };
  pidFile: string;
}

function configuration(options: Configured): string {
  // Without `always` a power cut takes what was acknowledged in the two minutes before. Without `max_file_store` a server
  // that starts on a nearly full disk takes three quarters of what is free for its limit, and refuses every message then
  // and later, when there is space. The disk is the limit.
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

/** The reason in nats-server's own words: its last line marked as fatal or as an error. */
function failure(log: string): string | undefined {
  const lines = log.split("\n").filter((line) => /\[(FTL|ERR)\]/.test(line) || line.startsWith("nats-server:"));
  return lines
    .at(-1)
    ?.replace(/^.*\[(FTL|ERR)\] |^nats-server: /, "")
    .trim()
    .replace(/\.$/, "");
}

/** True as soon as a NATS server greets on that address, false when the time is over or the signal is given. */
export async function waitForNats(
  host: string,
  port: number,
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
): Promise<boolean> {
  const over = AbortSignal.timeout(options.timeoutMs);
  const signal = options.signal === undefined ? over : AbortSignal.any([over, options.signal]);
  while (!signal.aborted) {
    if (await greets(host, port, signal)) return true;
    await delay(deployLimits.readyPollMs, undefined, { signal }).catch(() => undefined);
  }
  return false;
}

function greets(host: string, port: number, signal: AbortSignal): Promise<boolean> {
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
