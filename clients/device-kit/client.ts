/** The device API as six functions (contract, "Endpoints"). Reads keep the ETag, so an unchanged answer has no body. */
import { isInteger, isText, listOf, objectOf, orNull } from "./guards.ts";
import { type KitRequest, noAnswer, type Result, type Transport } from "./transport.ts";

export interface DeviceSnapshot {
  readonly device_id: number;
  readonly name: string;
  readonly kind: string;
  readonly capabilities: readonly string[];
  readonly status: string;
  readonly station_name: string;
  readonly station_status: string;
  readonly handoff_target: string;
  /** Empty, or why the device may not act now. */
  readonly blocked_reason: string;
  readonly server_time: string;
}

/** The collection that a companion makes. The service sets the amount and the currency; a device changes neither. */
export interface Assignment {
  readonly intent_id: number;
  readonly intent_display_number: number;
  readonly order_display_number: number;
  readonly station_name: string;
  /** A decimal, for example "12.50". */
  readonly amount: string;
  readonly currency: string;
  readonly status: string;
  readonly handoff_target: string;
  readonly expires_at: string;
}

export interface DisplayState {
  /** `idle`, `total`, `qr` or `paid`. */
  readonly state: string;
  readonly order_display_number: number;
  readonly amount: string;
  readonly currency: string;
  readonly qr_payload: string;
  readonly intent_status: string;
  readonly server_time: string;
}

export const OUTCOMES = ["reported_success", "reported_declined", "reported_cancelled", "reported_unknown"] as const;
export type OutcomeWord = (typeof OUTCOMES)[number];

/** One report. The key is required: a sender without it cannot repeat safely. */
export interface Report {
  readonly intent_id: number;
  readonly outcome: OutcomeWord;
  readonly provider_reference: string;
  readonly provider_code: string;
  readonly client_idempotency_key: string;
}

export interface RecordedReport {
  readonly outcome: string;
  readonly provider_reference: string;
  readonly provider_code: string;
  readonly reported_at: string;
}

const isSnapshot = objectOf<DeviceSnapshot>({
  device_id: isInteger,
  name: isText,
  kind: isText,
  capabilities: listOf(isText),
  status: isText,
  station_name: isText,
  station_status: isText,
  handoff_target: isText,
  blocked_reason: isText,
  server_time: isText,
});
export const isAssignment = objectOf<Assignment>({
  intent_id: isInteger,
  intent_display_number: isInteger,
  order_display_number: isInteger,
  station_name: isText,
  amount: isText,
  currency: isText,
  status: isText,
  handoff_target: isText,
  expires_at: isText,
});

interface Enrollment {
  readonly credential: string;
  readonly device: DeviceSnapshot;
}
interface AssignmentBody {
  readonly assignment: Assignment | null;
  readonly server_time: string;
}
interface ReportBody {
  readonly report: RecordedReport;
  readonly assignment: Assignment;
}
const isEnrollment = objectOf<Enrollment>({ credential: isText, device: isSnapshot });
const isAssignmentBody = objectOf<AssignmentBody>({ assignment: orNull(isAssignment), server_time: isText });
const isReportBody = objectOf<ReportBody>({
  report: objectOf<RecordedReport>({
    outcome: isText,
    provider_reference: isText,
    provider_code: isText,
    reported_at: isText,
  }),
  assignment: isAssignment,
});
const isDisplayState = objectOf<DisplayState>({
  state: isText,
  order_display_number: isInteger,
  amount: isText,
  currency: isText,
  qr_payload: isText,
  intent_status: isText,
  server_time: isText,
});

export interface Got<T> {
  /** Undefined when nothing changed since the last call. */
  readonly value: T;
}
export interface DeviceClient {
  /** Claims a one-time code. Only this answer contains the credential. */
  enroll(code: string): Promise<Result<Got<Enrollment> & { readonly isEffective: boolean }>>;
  /** Reports that the device is alive; the device chooses the content of `summary`. */
  heartbeat(summary: object): Promise<Result<Got<DeviceSnapshot>>>;
  /** The device's snapshot. Reading it does not make the device live. */
  me(): Promise<Result<Got<DeviceSnapshot>>>;
  assignment(): Promise<Result<Got<AssignmentBody | undefined>>>;
  display(): Promise<Result<Got<DisplayState | undefined>>>;
  /** Reports an outcome; safe to call again with the same key, also after a restart. */
  report(report: Report): Promise<Result<Got<ReportBody>>>;
  /** The next requests send this credential, and no ETag. */
  use(credential: string): void;
  /** The next reads send no ETag. */
  forgetEtags(): void;
}

export function createDeviceClient(transport: Transport): DeviceClient {
  let credential: string | undefined;
  let etags: Record<string, string> = {};
  const send = async <T>(
    request: KitRequest,
    isBody: (value: unknown) => value is T,
  ): Promise<Result<Got<T | undefined> & { readonly isEffective: boolean }>> => {
    const result = await transport.send(credential === undefined ? request : { credential, ...request });
    if (!result.ok) return result;
    const { status, body, etag, isEffective } = result;
    if (status === 304 && request.etag !== undefined) return { ok: true, value: undefined, isEffective };
    if (!isBody(body)) return noAnswer(`The answer to ${request.path} is not one of this service.`);
    if (request.method === "GET" && etag !== undefined) etags[request.path] = etag;
    return { ok: true, value: body, isEffective };
  };
  const read = <T>(path: string, isBody: (value: unknown) => value is T) =>
    send({ method: "GET", path, etag: etags[path] }, isBody);
  /** A request without an ETag: there is no 304, so the answer has a value. */
  const whole = <T>(request: KitRequest, isBody: (value: unknown) => value is T) =>
    send(request, isBody) as Promise<Result<Got<T> & { readonly isEffective: boolean }>>;
  return {
    async enroll(code) {
      credential = undefined;
      return await whole({ method: "POST", path: "enroll/", body: { code } }, isEnrollment);
    },
    heartbeat: (summary) => whole({ method: "POST", path: "heartbeat/", body: { summary } }, isSnapshot),
    me: () => whole({ method: "GET", path: "me/" }, isSnapshot),
    assignment: () => read("assignment/", isAssignmentBody),
    display: () => read("display/", isDisplayState),
    report: (report) =>
      whole({ method: "POST", path: "assignment/report/", body: report, isUrgent: true }, isReportBody),
    use(next) {
      if (next !== credential) etags = {};
      credential = next;
    },
    forgetEtags() {
      etags = {};
    },
  };
}
