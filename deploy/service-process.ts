/** Starts the processes of this product. Each reports to its parent that it is ready, or in one sentence why it ends. */
import { once } from "node:events";
import { z } from "zod";
import { UserError } from "../services/runtime/user-error.ts";
import { describeExit, startChild, untilReady } from "./child.ts";
import type { Ending, Running } from "./keep-running.ts";
import { deployLimits } from "./limits.ts";
import type { LogSpec } from "./log-files.ts";

/** What a service process sends over IPC, once. */
const messageSchema = z.discriminatedUnion("ready", [
  z.looseObject({ ready: z.literal(true) }),
  z.object({ ready: z.literal(false), code: z.string(), message: z.string() }),
]);

/** `{ ready: true }` and other facts that the service reports, e.g. its port. */
type ReadyMessage = { ready: true; [fact: string]: unknown };

interface ServiceProcessOptions extends LogSpec {
  /** The name of the process in messages, e.g. `gateway`. */
  name: string;
  /** The TypeScript file to run, absolute. */
  script: string;
  args: string[];
  environment: NodeJS.ProcessEnv;
  /** An abort during the start ends the process. */
  stopping?: AbortSignal;
}

/** A process of ours that has reported ready. */
export interface ServiceProcess extends Running {
  ready: ReadyMessage;
}

/**
 * Starts a Node process of ours and waits until it reports ready. Throws the reason that the process reports, or
 * `service_start_failed`, `…_stopped` or `…_timeout`.
 */
export async function startServiceProcess(options: ServiceProcessOptions): Promise<ServiceProcess> {
  const { name, script, args, environment, logFile, stopping } = options;
  const child = await startChild({
    command: process.execPath,
    args: [script, ...args],
    spawn: { env: environment },
    ipc: true,
    log: options,
    stopSignal: "SIGTERM",
    stopMs: deployLimits.serviceStopMs,
    // The process drains by itself when its IPC channel closes; the watchdog kills it only if it does not end.
    orphanSignal: "0",
  });
  const reported: { ready?: ReadyMessage; reason?: UserError } = {};
  child.process.on("message", (raw) => {
    const message = messageSchema.safeParse(raw);
    if (!message.success) return;
    if (message.data.ready) reported.ready = { ...message.data };
    else reported.reason = new UserError(message.data.message, { code: message.data.code });
  });
  // The exit may be reported before the last message is read, so this first reads all messages and output.
  const ended = (async (): Promise<Ending> => {
    const exit = await child.exited;
    if (child.process.connected) await once(child.process, "disconnect");
    await child.output.logged;
    return { exit, reason: reported.reason };
  })();
  const exit = await untilReady(child, {
    name,
    code: "service_start",
    logFile,
    timeoutMs: deployLimits.serviceReadyMs,
    stopping,
    isReady: () => reported.ready !== undefined,
  });
  if (exit === undefined && reported.ready !== undefined) return { ready: reported.ready, child, ended };
  const { exit: end, reason } = await ended;
  const sentence = `${name} ${describeExit(end)} while starting; its log is ${logFile}.`;
  throw reason ?? new UserError(sentence, { code: "service_start_failed" });
}
