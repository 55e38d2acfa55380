/**
 * The device API as functions (contract, "Endpoints"). Reads remember their ETag, so an unchanged answer costs no body.
 * A report without an answer is repeated with the same key, up to `clientLimits.reportTries` tries.
 *
 * Each function throws `ServiceError` for an error body and `ServiceUnreachable` when no answer came.
 */
import { z } from "zod";
import { clientLimits } from "../limits.ts";
import { repeatUntilAnswered } from "./pace.ts";
import { type DeviceAnswer, type DeviceRequest, type DeviceTransport, ServiceUnreachable } from "./transport.ts";

// What a device reads (contract, "Resources and their fields"). Objects are loose: a field that is added inside `v1` must
// not stop a device that is in use.

const deviceSnapshotSchema = z.looseObject({
  device_id: z.int(),
  name: z.string(),
  kind: z.string(),
  capabilities: z.array(z.string()),
  status: z.string(),
  station_name: z.string(),
  station_status: z.string(),
  handoff_target: z.string(),
  /** Empty, or why the device may not act now. */
  blocked_reason: z.string(),
  server_time: z.string(),
});
export type DeviceSnapshot = z.infer<typeof deviceSnapshotSchema>;

const enrollmentSchema = z.looseObject({
  /** Returned only once. */
  credential: z.string(),
  scopes: z.array(z.string()),
  device: deviceSnapshotSchema,
});
export type Enrollment = z.infer<typeof enrollmentSchema>;

const assignmentSchema = z.looseObject({
  intent_id: z.int(),
  intent_display_number: z.int(),
  order_display_number: z.int(),
  station_name: z.string(),
  /** A decimal string, authored by the service; a device supplies no money field. */
  amount: z.string(),
  currency: z.string(),
  status: z.string(),
  handoff_target: z.string(),
  expires_at: z.string(),
});
export type Assignment = z.infer<typeof assignmentSchema>;

const assignmentAnswerSchema = z.looseObject({
  assignment: assignmentSchema.nullable(),
  server_time: z.string(),
});

const reportAnswerSchema = z.looseObject({
  report: z.looseObject({
    outcome: z.string(),
    provider_reference: z.string(),
    provider_code: z.string(),
    reported_at: z.string(),
  }),
  assignment: assignmentSchema,
});
type ReportAnswer = z.infer<typeof reportAnswerSchema>;

const displayStateSchema = z.looseObject({
  state: z.string(),
  order_display_number: z.int(),
  amount: z.string(),
  currency: z.string(),
  qr_payload: z.string(),
  intent_status: z.string(),
  server_time: z.string(),
});
export type DisplayState = z.infer<typeof displayStateSchema>;

/** One report. The key is required here: a sender that leaves it out cannot repeat safely. */
export interface ReportInput {
  readonly intent_id: number;
  readonly outcome: "reported_success" | "reported_declined" | "reported_cancelled" | "reported_unknown";
  readonly provider_reference?: string;
  readonly provider_code?: string;
  readonly client_idempotency_key: string;
}

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
