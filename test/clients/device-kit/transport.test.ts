import { expect, test, vi } from "vitest";
import { display } from "../../../clients/device-kit/display.ts";
import { KIT_LIMITS } from "../../../clients/device-kit/limits.ts";
import { hostPlatform } from "../../../clients/device-kit/platform.ts";
import { memoryStorage } from "../../../clients/device-kit/storage/memory.ts";
import { createTransport } from "../../../clients/device-kit/transport.ts";

test("a service that does not answer: the failure says so, and not that the request was cancelled", async () => {
  const host = hostPlatform();
  const platform = {
    ...host,
    fetch: (_url: string, { signal }: RequestInit) =>
      new Promise<never>((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(new Error("aborted")));
      }),
    setTimeout: (run: () => void, ms: number) => host.setTimeout(run, ms === KIT_LIMITS.requestTimeoutMs ? 20 : ms),
  };
  const transport = createTransport({ baseUrl: "http://127.0.0.1:9", platform });
  expect(await transport.send({ method: "GET", path: "me/" })).toMatchObject({
    ok: false,
    failure: { code: "no_answer", detail: "The service did not answer in time." },
  });
});

const nested = (levels: number): object => (levels === 0 ? {} : { inner: nested(levels - 1) });

test.each([
  ["within the limits", () => ({ app_version: "4.2.0", ...nested(7) }), { app_version: "4.2.0" }],
  ["too large", () => ({ text: "ä".repeat(2_048) }), { left_out: "summary" }],
  ["too deep", () => nested(8), { left_out: "summary" }],
  [
    "that throws",
    () => {
      throw new Error("no battery");
    },
    { left_out: "summary" },
  ],
  ["that is no JSON", () => ({ count: 1n }), { left_out: "summary" }],
])("telemetry %s: the heartbeat is sent", async (_, summary: () => object, expected) => {
  const record = {
    device_id: 7,
    credential: "c",
    accepted: true,
    first_poll_pending: false,
    attempt: null,
    reports: [],
  };
  const sent: unknown[] = [];
  const platform = {
    ...hostPlatform(),
    fetch: async (_url: string, { body }: RequestInit) => {
      sent.push(JSON.parse(body as string));
      return Promise.reject(new Error("no network"));
    },
  };
  const storage = memoryStorage(JSON.stringify(record));
  const device = display({ baseUrl: "http://127.0.0.1:9", platform, storage, summary, render: () => undefined });
  try {
    await vi.waitUntil(() => sent.length > 0);
    expect(sent).toEqual([{ summary: expect.objectContaining({ kit: "device-kit/1.0.0", ...expected }) as object }]);
  } finally {
    device.stop();
  }
});
