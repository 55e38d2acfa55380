import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { UserError } from "../services/runtime/user-error.ts";
import { type Child, describeExit, startChild } from "./child.ts";
import type { Ending, Running } from "./keep-running.ts";
import { deployLimits } from "./limits.ts";
import type { LogSpec } from "./log-files.ts";
import type { StepControl } from "./supervisor.ts";

/** What a service process reports to its parent over IPC, once: that it is ready, or in one sentence why it ends. */
const messageSchema = z.discriminatedUnion("ready", [
  z.looseObject({ ready: z.literal(true) }),
  z.object({ ready: z.literal(false), code: z.string(), message: z.string() }),
]);

/** `{ ready: true }` and whatever else the service says about itself, e.g. the port that it got. */
export type ReadyMessage = { ready: true; [fact: string]: unknown };

export interface ServiceProcessOptions extends LogSpec {
  /** For sentences, e.g. `gateway`. */
  name: string;
  /** The TypeScript file to run, absolute. */
  script: string;
  args: string[];
  environment: NodeJS.ProcessEnv;
  /** When `stopping` is aborted while the process starts, it is ended again. */
  control: Pick<StepControl, "stopping">;
}

/** A process of ours that has reported ready. */
export interface ServiceProcess extends Running {
  ready: ReadyMessage;
}

/**
 * Starts a Node process of ours and waits until it reports ready. Throws the service's own sentence as a UserError, or
 * `service_start_failed` / `service_start_timeout`.
 */
export async function startServiceProcess(options: ServiceProcessOptions): Promise<ServiceProcess> {
  const { logFile } = options;
  const child = await startChild({
    command: process.execPath,
    args: [options.script, ...options.args],
    spawn: { env: options.environment },
    ipc: true,
    log: options,
    stopSignal: "SIGTERM",
    stopMs: deployLimits.serviceStopMs,
    // It drains by itself when its IPC channel closes; the watchdog kills it only if it does not.
    orphanSignal: "0",
  });

  const ownSentence: OwnSentence = {};
  const ready = readyMessage(child, ownSentence);
  const ended = lastWords(child, ownSentence);
  const started = new AbortController();
  const outcome = await Promise.race([
    ready,
    ended,
    patienceOver(AbortSignal.any([options.control.stopping, started.signal])),
  ]).finally(() => started.abort());
  if (typeof outcome === "object" && "ready" in outcome) return { ready: outcome, child, ended };
  if (typeof outcome === "object") {
    const sentence = `${options.name} ${describeExit(outcome.exit)} while starting; its log is ${logFile}.`;
    throw outcome.reason ?? new UserError(sentence, { code: "service_start_failed" });
  }
  await child.stop();
  await child.output.kept;
  throw new UserError(`${options.name} ${outcome}; its log is ${logFile}.`, { code: "service_start_timeout" });
}

/** The sentence in which a service said itself why it ends, once it did. */
interface OwnSentence {
  error?: UserError;
}

function readyMessage(child: Child, ownSentence: OwnSentence): Promise<ReadyMessage> {
  return new Promise((resolve) => {
    child.process.on("message", (raw) => {
      const message = messageSchema.safeParse(raw);
      if (!message.success) return;
      if (message.data.ready) resolve({ ...message.data });
      else ownSentence.error = new UserError(message.data.message, { code: message.data.code });
    });
  });
}

/** Waits for the end of a child. Its exit may be noticed before its last message is read, so all of them are read to their end. */
async function lastWords(child: Child, ownSentence: OwnSentence): Promise<Ending> {
  const exit = await child.exited;
  if (child.process.connected) await once(child.process, "disconnect");
  await child.output.kept;
  return { exit, reason: ownSentence.error };
}

/** Resolves, in words, when the time for starting is over or the signal ends the wait. */
async function patienceOver(signal: AbortSignal): Promise<string> {
  const seconds = deployLimits.serviceReadyMs / 1000;
  const late = `was not ready within ${seconds} s`;
  return await delay(deployLimits.serviceReadyMs, late, { signal }).catch(() => "was stopped while starting");
}
