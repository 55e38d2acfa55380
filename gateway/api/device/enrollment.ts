/** A device claims its enrollment code once, and only that answer shows its credential (contract, "POST enroll"). */
import { z } from "zod";
import { deviceSnapshot } from "../../../machines/views/device-snapshot.ts";
import { addressBlock } from "../../../services/bus/address-block.ts";
import * as codes from "../../../services/bus/messages/enrollment-codes.ts";
import { ApiError, type Handler } from "../../http/handler-context.ts";
import { anyone, DEVICE_SCOPES, route } from "../../http/route.ts";
import { LIMITS } from "../../limits.ts";
import { serverTime } from "../../read-model/polls.ts";
import { ENROLL_RATE, throttleHeaders } from "../../read-model/throttles.ts";
import { deviceSnapshotSchema, SNAPSHOT_EXAMPLE } from "./self.ts";

const CREDENTIAL_EXAMPLE = "dp_5c_wJ4Xx0Jr7h2m9V5n1q8s3t6u0y2a4c6e8g0i2k4m6o8";
const SCOPES_EXAMPLE = ["device:read", "device:heartbeat", "assignment:read", "assignment:report"];
const deviceScopeSchema = z.enum(DEVICE_SCOPES).meta({ id: "DeviceScope" });

/** The schema ignores unknown fields, so that newer devices can use an older service. */
const enrollBodySchema = z
  .looseObject({
    code: z
      .string()
      .meta({ description: "The one-time code; case and hyphen do not matter.", examples: ["7K3QX-9M2TB"] }),
  })
  .meta({ id: "Enroll", examples: [{ code: "7K3QX-9M2TB" }] });

const enrollmentSchema = z
  .object({
    credential: z.string().meta({
      description: "The bearer credential; shown only once.",
      examples: [CREDENTIAL_EXAMPLE],
    }),
    scopes: z.array(deviceScopeSchema),
    device: deviceSnapshotSchema,
  })
  .meta({
    id: "Enrollment",
    examples: [{ credential: CREDENTIAL_EXAMPLE, scopes: SCOPES_EXAMPLE, device: SNAPSHOT_EXAMPLE }],
  });

const enrollDevice: Handler<z.infer<typeof enrollBodySchema>> = async (context) => {
  const { deps, body, address } = context;
  const retryAfterMs = deps.enrollThrottle.take(address, deps.nowMs());
  if (retryAfterMs > 0) {
    throw new ApiError("throttled", { headers: throttleHeaders("enroll", ENROLL_RATE, retryAfterMs) });
  }
  // With stale replicas the answer would fail after the claim, and the code would be lost.
  deps.requireFresh();
  const switches = deps.switches();
  const release = await deps.enrollSlots.acquire(addressBlock(address), LIMITS.enrollmentMaxWaitMs);
  if (release === undefined) throw new ApiError("busy");
  const { credential, scopes, ...claimed } = await deps.bus
    .call(codes.enrollDevice, { code: body.code, address })
    .finally(release);
  // From the claim, because the answer must not fail and the replica may not have the device yet.
  const device = { ...deviceSnapshot(claimed, switches), server_time: serverTime(deps.nowMs()) };
  return { status: 201, body: { credential, scopes, device }, headers: { "Cache-Control": "no-store" } };
};

export const enrollmentRoutes = [
  route({
    method: "POST",
    path: "/api/payments/v1/devices/enroll/",
    operation: "enrollDevice",
    operationId: "payments_device_enroll",
    tag: "device",
    summary: "Claim an enrollment code",
    description:
      "The call needs no credential: the code is its secret, and a successful call uses the code up. Unknown, used, expired, revoked and malformed codes get the same answer. Throttled by client address.",
    who: anyone,
    body: enrollBodySchema,
    // The registry only hashes a code, and a malformed one gets the same answer as an unknown one.
    unstorableText: "kept",
    replies: { 201: { description: "The credential, shown only once.", schema: enrollmentSchema } },
    errors: ["enrollment_code_invalid", "throttled", "replica_stale"],
    awaitsEffect: true,
    handler: enrollDevice,
  }),
];
