import { expect, test } from "vitest";
import { KIT_LIMITS } from "../../../clients/device-kit/limits.ts";
import { hostPlatform } from "../../../clients/device-kit/platform.ts";
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
