/** The session of a command: it ends also when the command was ended. */
import { expect, test } from "vitest";
import type { DeviceRequest } from "../../clients/device/transport.ts";
import { openSession } from "../../clients/session.ts";

test("Ctrl-C while the command works: the session is ended all the same", async () => {
  const stopping = new AbortController();
  const sent: string[] = [];
  const session = await openSession({
    transport: {
      async send({ method, path, signal }: DeviceRequest) {
        signal.throwIfAborted();
        sent.push(`${method} ${path}`);
        return { body: { token: "t" } as never, etag: undefined, isEffective: true };
      },
    },
    details: { email: "o@example.com", password: "p" },
    signal: stopping.signal,
  });
  stopping.abort();
  await session.logOut();
  expect(sent).toEqual(["POST session/", "DELETE session/"]);
});
