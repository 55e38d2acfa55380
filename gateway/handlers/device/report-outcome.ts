/** POST assignment/report: evidence, never truth (contract, "POST assignment/report"). */
import type { z } from "zod";
import type { PaymentIntent, Report } from "../../../machines/payment-intent.ts";
import type { BlockedReason } from "../../../machines/standing.ts";
import { assignmentView } from "../../../machines/views/assignment.ts";
import { UnavailableError } from "../../../services/bus/refusals.ts";
import type { reportBodySchema } from "../../contract/device.ts";
import { reportCommandId } from "../../http/command-id.ts";
import { type DeviceHandler, ok, Refusal, type StationCommandRequest } from "../../http/handler-context.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";
import { LIMITS } from "../../limits.ts";

export const reportOutcome: DeviceHandler<z.infer<typeof reportBodySchema>> = async (context) => {
  const { deps, device, body } = context;
  // A blocked device is refused with the reason all the same, by the station, which keeps what it says as evidence.
  const { blocked } = deps.deviceView("self", device);
  // No intent has such an id, so there is nothing to ask the station for.
  if (body.intent_id < 1) throw new Refusal(blocked === "" ? "handoff_not_assigned" : (blocked as BlockedReason));
  const wait = blocked === "" ? {} : { timeoutMs: LIMITS.blockedReportMs };
  // The station answers alike for an unknown intent, another device's and another station's: `handoff_not_assigned`.
  const request: StationCommandRequest = {
    commandId: reportCommandId(device.deviceId, body.intent_id, body.client_idempotency_key),
    actor: { kind: "device", id: device.deviceId },
    command: {
      type: "intent_report",
      intentId: body.intent_id,
      outcome: body.outcome,
      providerReference: body.provider_reference ?? "",
      providerCode: body.provider_code ?? "",
      blockedReason: blocked === "" ? undefined : (blocked as BlockedReason),
    },
  };
  const asked = deps.bus.command(device.stationId, request, wait);
  const { reply, intent } = await asked.catch((error: unknown) => {
    if (blocked === "" || !(error instanceof UnavailableError)) throw error;
    // Blocked it is, whoever says so; what it reported is in this line alone, or with the station, which may still do it.
    const { stationId, deviceId } = device;
    const { intent_id: intentId, outcome, provider_reference: providerReference } = body;
    const report = { requestId: context.requestId, stationId, deviceId, intentId, outcome, providerReference };
    deps.log.warn({ err: error, blocked, ...report }, "a blocked device's report may not have been kept");
    throw new Refusal(blocked as BlockedReason);
  });
  if (reply.type !== "report" || intent === null) throw new Refusal("handoff_not_assigned");
  return ok({ report: reportView(reply.report), assignment: assignmentView(intent satisfies PaymentIntent) });
};

function reportView(report: Report) {
  return {
    outcome: report.outcome,
    provider_reference: report.providerReference,
    provider_code: report.providerCode,
    reported_at: toTimestamp(report.reportedAtMs),
  };
}
