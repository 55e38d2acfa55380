/**
 * GET assignment when memory is not enough: the intent still is `created`, and a fresh fetch presents it. This is the
 * only state change that a device causes by a read (contract, "States and transitions").
 */
import { isEnded, type PaymentIntent } from "../../../machines/payment-intent.ts";
import { assignmentView } from "../../../machines/views/assignment.ts";
import { type DeviceContext, type DeviceHandler, Refusal, type Reply } from "../../http/handler-context.ts";
import { etagOf } from "../../read-model/etag.ts";
import { serverTime } from "../../read-model/polls.ts";
import { TAIL } from "../../read-model/rendered.ts";

export const fetchAssignment: DeviceHandler = async (context) => {
  const { deps, device } = context;
  const view = deps.deviceView("assignment", device);
  // Another fetch of the same device may have presented it meanwhile.
  if (view.presents === null) return reply(context, view.head, view.etag);
  const presented = await present(context, view.presents);
  const after = deps.deviceView("assignment", device);
  if (after.presents === null) return reply(context, after.head, after.etag);
  // The replica has not seen the commit in time, so the actor's own answer is shown.
  const assignment = presented === null || isEnded(presented.status) ? null : assignmentView(presented);
  const text = JSON.stringify({ assignment });
  return reply(context, `${text.slice(0, -1)},"server_time":"`, etagOf(text));
};

/** The intent as it is after the fetch; null when it is no longer this device's to collect. */
async function present(context: DeviceContext, intentId: number): Promise<PaymentIntent | null> {
  const { deps, device } = context;
  try {
    const { intent } = await deps.bus.command(device.stationId, {
      // One intent is presented to one device once, however often it is fetched.
      commandId: `present:${device.deviceId}:${intentId}`,
      actor: { kind: "device", id: device.deviceId },
      command: { type: "intent_present", intentId },
    });
    return intent;
  } catch (error) {
    if (error instanceof Refusal && error.code === "handoff_not_assigned") return null;
    throw error;
  }
}

function reply(context: DeviceContext, head: string, etag: string): Reply {
  return { status: 200, ready: head + serverTime(context.deps.nowMs()) + TAIL, headers: { ETag: etag } };
}
