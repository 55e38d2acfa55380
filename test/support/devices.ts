/** A device that the test enrolls at the device API. The API's limit applies: ten requests at once, then one a second. */
import { randomInt } from "node:crypto";
import { expect, vi } from "vitest";
import { type ApiClient, apiClient } from "./api-client.ts";
import { HANGS } from "./hangs.ts";
import { send } from "./http.ts";
import type { TestSystem } from "./system.ts";

export interface TestDevice extends ApiClient {
  readonly deviceId: number;
  readonly credential: string;
}

interface EnrollBody {
  readonly credential: string;
  readonly device: { readonly device_id: number };
}

/**
 * Headers of a request from another address of this machine: one address may claim ten times a minute, and open as many
 * sign-in links. The gateway uses the address only when it trusts the proxy.
 */
export const fromAnotherAddress = () => ({
  "x-forwarded-for": `127.${1 + randomInt(255)}.${randomInt(256)}.${randomInt(256)}`,
});

/** The root of the device API. */
export const DEVICES = "/api/payments/v1/devices/";

/** Claims a code. The device's paths are below `DEVICES`. */
export async function enrollDevice(baseUrl: string, code: string): Promise<TestDevice> {
  const enrolled = await send<EnrollBody>(baseUrl, "POST", `${DEVICES}enroll/`, {
    json: { code },
    headers: fromAnotherAddress(),
  });
  expect(enrolled.status, enrolled.text).toBe(201);
  const { credential, device } = enrolled.body;
  return { ...apiClient(baseUrl + DEVICES, credential), deviceId: device.device_id, credential };
}

/** Claims the code of the first station's device of this kind. */
export async function enrollSandboxDevice({ baseUrl, sandbox }: Pick<TestSystem, "baseUrl" | "sandbox">, kind: string) {
  const code = sandbox.stations[0]?.devices.find((device) => device.kind === kind)?.enrollmentCode;
  return await enrollDevice(baseUrl, code ?? "none");
}

export async function newCode(owner: ApiClient, deviceId: number): Promise<string> {
  return (await owner.good<{ code: string }>("POST", `devices/${deviceId}/enrollment-codes/`)).code;
}

/** Registers a device and claims its code. */
export async function addDevice(baseUrl: string, owner: ApiClient, facts: object): Promise<TestDevice> {
  const { device_id } = await owner.good<{ device_id: number }>("POST", "devices/", { body: facts });
  return await enrollDevice(baseUrl, await newCode(owner, device_id));
}

/** Waits for an assignment and reports its outcome. */
export async function reportOnce(device: TestDevice, outcome: string, reference: string): Promise<void> {
  const assignment = await vi.waitFor(
    async () => {
      const found = await device.good<{ assignment: { intent_id: number } | null }>("GET", "assignment/");
      if (found.assignment === null) throw new Error("There is no assignment yet.");
      return found.assignment;
    },
    { timeout: 20_000, interval: 1_000 },
  );
  const body = {
    intent_id: assignment.intent_id,
    outcome,
    provider_reference: reference,
    provider_code: "00",
    client_idempotency_key: `${assignment.intent_id} ${reference}`,
  };
  await device.good("POST", "assignment/report/", { body });
}

/** Waits until the station offers `smart_pos`. Sends one heartbeat at most, because the device has its usual throttle. */
export async function untilOffered(cashier: ApiClient, station: string, companion: TestDevice): Promise<void> {
  const isOffered = async (): Promise<boolean> => {
    const path = `${station}/routes/`;
    const { routes } = await cashier.good<{ routes: { route: string; offered: boolean }[] }>("GET", path);
    return routes.some(({ route, offered }) => route === "smart_pos" && offered);
  };
  if (!(await isOffered())) await companion.good("POST", "heartbeat/", { body: {} });
  await vi.waitUntil(isOffered, HANGS);
}
