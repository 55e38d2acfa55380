/**
 * The handlers' access to the bus: calls of services, commands to stations, heartbeats and files. A call that changes data
 * waits until the replicas show the change, so that the caller reads what it has written.
 */
import { JetStreamApiError } from "@nats-io/jetstream";
import { z } from "zod";
import type { Bus } from "../services/bus/connection.ts";
import { type Barrier, barrierSchema } from "../services/bus/messages/caller.ts";
import { heartbeatHeaders } from "../services/bus/messages/heartbeat.ts";
import { call, type Operation } from "../services/bus/operation.ts";
import { RefusedError, UnavailableError } from "../services/bus/refusals.ts";
import { deleteFile, storeFile } from "../services/bus/statement-files.ts";
import { askStation } from "../services/bus/station-client.ts";
import { heartbeatSubject, storedHeartbeatSubject } from "../services/bus/subjects.ts";
import type { Count } from "../services/runtime/metrics.ts";
import { type AcceptedResponse, ApiError, type Effect, type GatewayBus } from "./http/handler-context.ts";
import { ClientGoneError } from "./http/read-body.ts";
import { LIMITS } from "./limits.ts";
import type { Replicas } from "./read-model/replicas.ts";

export const STATION_OPERATION = "station.command";
export const HEARTBEAT_OPERATION = "heartbeat";
export const FILE_OPERATION = "file";
export const BUS_FAILURES = ["no_answer", "busy", "unavailable"] as const;

/** Counts failed requests: `operation` is the subject of a service's operation, or one of the three names above. */
export type BusFailures = Count<"operation" | "failure">;

interface GatewayBusDeps {
  readonly bus: Bus;
  readonly replicas: Replicas;
  readonly failures: BusFailures;
}

export function createGatewayBus(deps: GatewayBusDeps): GatewayBus {
  return busOf(deps, undefined);
}

/** `effect` belongs to one HTTP request. It is undefined where the request must not change data that gateways or stations follow. */
function busOf(deps: GatewayBusDeps, effect: Effect | undefined): GatewayBus {
  const { bus, replicas, failures } = deps;
  const counted = async <T>(operation: string, answer: Promise<T>): Promise<T> => {
    try {
      return await answer;
    } catch (error) {
      const failure = failureOf(error);
      if (failure !== undefined) failures.add({ operation, failure });
      throw error;
    }
  };
  return {
    async call<TRequest extends z.ZodType, TReply extends z.ZodType>(
      operation: Operation<TRequest, TReply>,
      request: z.input<TRequest>,
      timeoutMs?: number,
    ): Promise<z.infer<TReply>> {
      if (carriesBarrier(operation) && effect === undefined)
        throw new Error(`${operation.subject} makes a change that others follow: its route needs \`awaitsEffect\`.`);
      const reply = await counted(operation.subject, call(bus.nc, operation, request, timeoutMs));
      const barrier = barrierOf(operation, reply);
      if (barrier !== undefined && effect !== undefined) {
        const isVisible = await replicas.waitFor(barrier, LIMITS.barrierVisibleMs);
        if (!isVisible || barrier.isUndelivered === true) effect.isEffective = false;
      }
      return reply;
    },

    noting: (noted) => busOf(deps, noted),

    async storeFile(bytes) {
      try {
        return await storeFile(bus, bytes);
      } catch (error) {
        // The body has ended early, or the store is full.
        if (error instanceof ApiError || error instanceof ClientGoneError || error instanceof RefusedError) throw error;
        failures.add({ operation: FILE_OPERATION, failure: "no_answer" });
        throw new UnavailableError(FILE_OPERATION, error);
      }
    },

    async discardFile(name) {
      await deleteFile(bus, name).catch(() => undefined);
    },

    async command(stationId, request, options) {
      const response = await counted(STATION_OPERATION, askStation(bus.nc, stationId, request, options));
      await replicas.waitForStation(stationId, response.sequence, LIMITS.commandVisibleMs);
      const { reply } = response;
      if (reply.ok) return { ...response, reply } satisfies AcceptedResponse;
      // The caller has found both in the replica: the bus has lost the station since, or the device was reset or revoked.
      if (reply.code === "station_unknown" || reply.code === "device_unknown") throw new ApiError("replica_stale");
      const { code, status, reason, holder, earlierIntentId, reasonNumber, earlierSale } = reply;
      throw new ApiError(code, { status, reason: reason ?? holder, earlierIntentId, reasonNumber, earlierSale });
    },

    async heartbeat(device, heartbeat) {
      const { stationId, deviceId } = device;
      const subject = heartbeatSubject(stationId, deviceId);
      const body = JSON.stringify(heartbeat);
      const headers = heartbeatHeaders(heartbeat);
      try {
        await bus.js.publish(subject, body, { headers, timeout: LIMITS.heartbeatStoredMs, retries: 1 });
      } catch (error) {
        if (isElecting(bus, error)) return bus.nc.publish(storedHeartbeatSubject(stationId, deviceId), body);
        failures.add({ operation: HEARTBEAT_OPERATION, failure: "no_answer" });
        throw new UnavailableError(subject, error);
      }
    },
  };
}

/**
 * Whether the cluster could not store the heartbeat because it elects a leader. The gateway then publishes the heartbeat to
 * the station's host, and the stream lacks it. That does no harm: a device counts as silent only after two and a half intervals.
 */
function isElecting(bus: Bus, error: unknown): boolean {
  return bus.nc.info?.cluster !== undefined && bus.isUp() && !(error instanceof JetStreamApiError);
}

/** The failure when no service has answered, or the service could not do its work; undefined for any other refusal. */
function failureOf(error: unknown): (typeof BUS_FAILURES)[number] | undefined {
  if (error instanceof UnavailableError) return "no_answer";
  if (!(error instanceof RefusedError)) return undefined;
  const { code } = error.refusal;
  return code === "busy" || code === "unavailable" ? code : undefined;
}

type AnyOperation = Operation<z.ZodType, z.ZodType>;

/** Whether an operation replies with a barrier: as the reply itself, or in its field `barrier`. */
function carriesBarrier({ reply }: AnyOperation): boolean {
  return reply === barrierSchema || (reply instanceof z.ZodObject && reply.shape["barrier"] === barrierSchema);
}

function barrierOf(operation: AnyOperation, reply: unknown): Barrier | undefined {
  if (!carriesBarrier(operation)) return undefined;
  return operation.reply === barrierSchema ? (reply as Barrier) : (reply as { readonly barrier: Barrier }).barrier;
}
