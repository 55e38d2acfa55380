/** Does within a second what the audit log records of a run at a device, and makes the result that `certify` records. */
import { expect } from "vitest";
import { DEVICE_CHECKS } from "../../clients/conformance/devices/checks.ts";
import { ofCapabilities } from "../../clients/conformance/devices/device-suite.ts";
import type { DeviceKind } from "../../clients/conformance/devices/device-world.ts";
import { SUITE } from "../../clients/conformance/suite-version.ts";
import { newCode } from "../support/devices.ts";
import { send } from "../support/http.ts";
import type { Person } from "../support/people.ts";
import type { TestSystem } from "../support/system.ts";

export interface Sandbox {
  readonly sandbox_id: number;
  readonly companion: { readonly device_id: number; readonly enrollment_code: string };
  readonly display: { readonly device_id: number; readonly enrollment_code: string };
}
export interface SeenRun {
  readonly sandboxId: number;
  readonly deviceId: number;
}

let devices = 0;
/** Enrolls from a new address, because one address may enroll ten devices a minute. */
export async function enroll({ baseUrl }: Pick<TestSystem, "baseUrl">, code: string): Promise<void> {
  devices += 1;
  const headers = { "x-forwarded-for": `100.64.1.${devices}` };
  const answer = await send(baseUrl, "POST", "/api/payments/v1/devices/enroll/", { json: { code }, headers });
  expect(answer.status, answer.text).toBe(201);
}

/** Does what the audit log records of the suite's work at a device. */
export async function footprint(system: TestSystem, owner: Person, kind: DeviceKind): Promise<SeenRun> {
  const body = { filial_id: system.sandbox.filialId, name: "Certified", currency: "EUR" };
  const { sandbox_id: sandboxId } = await owner.good<Sandbox>("POST", "sandboxes/", { body });
  const reset = () => owner.good<Sandbox>("POST", `sandboxes/${sandboxId}/reset/`);
  const { device_id: deviceId, enrollment_code: code } = (await reset())[kind];
  await enroll(system, code);
  for (const step of ["suspend/", "resume/", "reset/"])
    await owner.good("POST", `devices/${deviceId}/${step}`, step === "reset/" ? {} : { body: { reason: "Suite" } });
  await enroll(system, await newCode(owner, deviceId));
  await reset();
  return { sandboxId, deviceId };
}

export const resultOf = (kind: DeviceKind, { sandboxId, deviceId }: SeenRun, capabilities?: readonly string[]) => ({
  sandbox_id: sandboxId,
  device_id: deviceId,
  provider: "Acme",
  software_version: "4.2.0",
  suite_version: SUITE.version,
  suite_sha256: SUITE.sha256(),
  contract_sha256: SUITE.contractSha256(),
  checks: ofCapabilities(DEVICE_CHECKS[kind], capabilities).map(({ id }) => ({
    id,
    outcome: "passed",
    duration_ms: 10,
  })),
  left_behind: [],
});
