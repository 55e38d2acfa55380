/**
 * The device API as functions (contract, "Endpoints"). Reads remember their ETag, so an unchanged answer costs no body;
 * a report is repeated with the same key until the service has answered it.
 *
 * Every function throws `ServiceRefusal` for an error body and `ServiceUnreachable` when no answer came.
 */
import type { z } from "zod";
import {
  type Assignment,
  assignmentAnswerSchema,
  type DeviceSnapshot,
  type DisplayState,
  deviceSnapshotSchema,
  displayStateSchema,
  type Enrollment,
  enrollmentSchema,
  type ReportAnswer,
  type ReportInput,
  reportAnswerSchema,
} from "./device-contract.ts";
import { ServiceUnreachable } from "./device-error.ts";
import type { DeviceAnswer, DeviceRequest, DeviceTransport } from "./device-transport.ts";
import { clientLimits } from "./limits.ts";
import { repeatUntilAnswered } from "./repeat.ts";

/** Claims a one-time code. The credential in the answer is shown this once; it may be unknown until it is effective. */
export async function enroll(
  transport: DeviceTransport,
  code: string,
  signal: AbortSignal,
): Promise<Enrollment & { readonly isEffective: boolean }> {
  const request = { method: "POST", path: "devices/enroll/", body: { code }, signal } as const;
  const answer = await transport.send(request, enrollmentSchema);
  return { ...present(answer), isEffective: answer.isEffective };
}

export interface DeviceClient {
  /** Reports to the service that the device is there; `summary` is free telemetry. */
  heartbeat(summary: Record<string, unknown>, signal: AbortSignal): Promise<DeviceSnapshot>;
  /** The device's snapshot. Unlike a heartbeat, reading it does not make the device live. */
  me(signal: AbortSignal): Promise<DeviceSnapshot>;
  /** The collection to make, null when there is none, or undefined when nothing changed since the last call. */
  assignment(signal: AbortSignal): Promise<Assignment | null | undefined>;
  /** The display's state, or undefined when nothing changed since the last call. */
  display(signal: AbortSignal): Promise<DisplayState | undefined>;
  /** Reports an outcome; safe to call again with the same key, also after a restart. */
  report(input: ReportInput, signal: AbortSignal): Promise<ReportAnswer>;
}

export function createDeviceClient(transport: DeviceTransport, credential: string): DeviceClient {
  const etags = new Map<string, string>();
  const send = <TSchema extends z.ZodType>(
    request: DeviceRequest,
    schema: TSchema,
  ): Promise<DeviceAnswer<z.infer<TSchema>>> => transport.send({ ...request, credential }, schema);
  const read = async <TSchema extends z.ZodType>(
    path: string,
    schema: TSchema,
    signal: AbortSignal,
  ): Promise<z.infer<TSchema> | undefined> => {
    const answer = await send({ method: "GET", path, etag: etags.get(path), signal }, schema);
    if (answer.body !== undefined && answer.etag !== undefined) etags.set(path, answer.etag);
    return answer.body;
  };
  return {
    async heartbeat(summary, signal) {
      const request = { method: "POST", path: "devices/heartbeat/", body: { summary }, signal } as const;
      return present(await send(request, deviceSnapshotSchema));
    },
    async me(signal) {
      return present(await send({ method: "GET", path: "devices/me/", signal }, deviceSnapshotSchema));
    },
    async assignment(signal) {
      const body = await read("devices/assignment/", assignmentAnswerSchema, signal);
      return body === undefined ? undefined : body.assignment;
    },
    display: (signal) => read("devices/display/", displayStateSchema, signal),
    report: (input, signal) =>
      repeatUntilAnswered(
        async () => {
          const request = { method: "POST", path: "devices/assignment/report/", body: input, signal } as const;
          return present(await send(request, reportAnswerSchema));
        },
        { signal, maxTries: clientLimits.reportTries },
      ),
  };
}

function present<T>(answer: DeviceAnswer<T>): T {
  if (answer.body === undefined) throw new ServiceUnreachable("The service answered 304 to a request without an ETag.");
  return answer.body;
}
