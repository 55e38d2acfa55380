/**
 * Waits until JetStream answers. A cluster without a quorum answers nothing, or says that it is not available: that ends by
 * itself, so a process waits for it, with one line in the log that says why.
 */
import { setTimeout as delay } from "node:timers/promises";
import { JetStreamApiError, jetstreamManager } from "@nats-io/jetstream";
import { errors, type NatsConnection } from "nats";
import { errorCode, UserError } from "../runtime/user-error.ts";
import { BUS_LIMITS } from "./limits.ts";
import { busWithoutJetStream, busWithoutQuorum, unreachableBus } from "./unreachable.ts";

/** JetStream is not available, because its cluster has no leader. */
const NOT_AVAILABLE = 10_008;

export interface QuorumLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface ReachOptions {
  readonly log: QuorumLog;
  /** How long to wait for a quorum; undefined for as long as it takes. */
  readonly withinMs: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Throws UserError `nats_without_jetstream`, `nats_no_quorum`, `nats_unreachable` or `start_stopped`. */
export async function reachJetStream(nc: NatsConnection, options: ReachOptions): Promise<void> {
  const { log, withinMs, signal } = options;
  const startedAtMs = performance.now();
  const wait = new QuorumWait(log);
  for (;;) {
    try {
      await jetstreamManager(nc, { timeout: BUS_LIMITS.quorumAnswerMs });
      return wait.end();
    } catch (cause) {
      const server = nc.getServer();
      const waitedMs = performance.now() - startedAtMs;
      if (!isSilence(cause)) throw busWithoutJetStream(server, cause);
      if (await answers(nc)) {
        if (withinMs !== undefined && waitedMs > withinMs) throw busWithoutQuorum(server, cause);
        wait.go(server);
      } else if (waitedMs > BUS_LIMITS.firstConnectMs) throw unreachableBus([server], cause);
    }
    await delay(BUS_LIMITS.ensurePauseMs, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    if (signal?.aborted === true) throw new UserError("The start was stopped.", { code: "start_stopped" });
  }
}

/** Says that a process waits for a quorum: once, then each minute, and once when it is over. */
export class QuorumWait {
  readonly #log: QuorumLog;
  #sinceMs: number | undefined;
  #saidAtMs = 0;

  constructor(log: QuorumLog) {
    this.#log = log;
  }

  go(server: string): void {
    const nowMs = performance.now();
    const isFirst = this.#sinceMs === undefined;
    this.#sinceMs ??= nowMs;
    if (!isFirst && nowMs - this.#saidAtMs < BUS_LIMITS.quorumSaidMs) return;
    this.#saidAtMs = nowMs;
    const { message } = busWithoutQuorum(server, undefined);
    this.#log.warn(
      { waitedMs: Math.round(nowMs - this.#sinceMs) },
      `${message} This process waits, and goes on by itself.`,
    );
  }

  end(): void {
    if (this.#sinceMs === undefined) return;
    this.#log.info({ waitedMs: Math.round(performance.now() - this.#sinceMs) }, "the NATS cluster has a quorum");
    this.#sinceMs = undefined;
  }
}

function isSilence(cause: unknown): boolean {
  if (cause instanceof JetStreamApiError) return cause.code === NOT_AVAILABLE;
  return cause instanceof errors.TimeoutError || errorCode(cause) === "bus_down";
}

/** Whether the server itself answers. */
async function answers(nc: NatsConnection): Promise<boolean> {
  const late = delay(BUS_LIMITS.quorumAnswerMs, false, { ref: false });
  const flushed = nc.flush().then(
    () => true,
    () => false,
  );
  return await Promise.race([flushed, late]);
}
