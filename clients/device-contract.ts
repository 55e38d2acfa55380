/**
 * What a device reads from the service (contract, "Resources and their fields"). Objects are loose: a field added inside
 * `v1` must not stop a device in the field.
 */
import { z } from "zod";

export const deviceSnapshotSchema = z.looseObject({
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

export const enrollmentSchema = z.looseObject({
  /** Returned only once. */
  credential: z.string(),
  scopes: z.array(z.string()),
  device: deviceSnapshotSchema,
});
export type Enrollment = z.infer<typeof enrollmentSchema>;

export const assignmentSchema = z.looseObject({
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

export const assignmentAnswerSchema = z.looseObject({
  assignment: assignmentSchema.nullable(),
  server_time: z.string(),
});

export const reportAnswerSchema = z.looseObject({
  report: z.looseObject({
    outcome: z.string(),
    provider_reference: z.string(),
    provider_code: z.string(),
    reported_at: z.string(),
  }),
  assignment: assignmentSchema,
});
export type ReportAnswer = z.infer<typeof reportAnswerSchema>;

export const displayStateSchema = z.looseObject({
  state: z.string(),
  order_display_number: z.int(),
  amount: z.string(),
  currency: z.string(),
  qr_payload: z.string(),
  intent_status: z.string(),
  server_time: z.string(),
});
export type DisplayState = z.infer<typeof displayStateSchema>;

export const errorBodySchema = z.looseObject({
  code: z.string(),
  detail: z.string().optional(),
  /** The intent's status, on a 409. */
  status: z.string().optional(),
});

export const OUTCOMES = ["reported_success", "reported_declined", "reported_cancelled", "reported_unknown"] as const;

/** One report. The key is required here: a sender that leaves it out cannot repeat safely. */
export interface ReportInput {
  readonly intent_id: number;
  readonly outcome: (typeof OUTCOMES)[number];
  readonly provider_reference?: string;
  readonly provider_code?: string;
  readonly client_idempotency_key: string;
}
