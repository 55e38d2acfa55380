/** A device of the test's own at the device API. Its throttle is real: ten requests at once, then one a second. */
import { expect } from "vitest";
import { type ApiClient, apiClient } from "./api-client.ts";
import { send } from "./http.ts";

export interface TestDevice extends ApiClient {
  readonly deviceId: number;
  readonly credential: string;
}

interface EnrollBody {
  readonly credential: string;
  readonly device: { readonly device_id: number };
}

/** Claims a code (one address may try ten times a minute); paths are then below `/api/payments/v1/devices/`. */
export async function enrollDevice(baseUrl: string, code: string): Promise<TestDevice> {
  const root = `${baseUrl}/api/payments/v1/devices/`;
  const enrolled = await send<EnrollBody>(baseUrl, "POST", "/api/payments/v1/devices/enroll/", { json: { code } });
  expect(enrolled.status, enrolled.text).toBe(201);
  const { credential, device } = enrolled.body;
  return { ...apiClient(root, credential), deviceId: device.device_id, credential };
}
