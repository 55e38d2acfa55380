/** The session of a command. It may become effective late. It also ends when a person interrupts the command. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test, vi } from "vitest";
import { createTransport, type ServiceRequest } from "../../clients/http/transport.ts";
import { asPerson } from "../../clients/person.ts";
import { openSession } from "../../clients/session.ts";

test("Ctrl-C while the command works: the command still ends its session", async () => {
  const stopping = new AbortController();
  const sent: string[] = [];
  const session = await openSession({
    transport: {
      async send({ method, path, signal }: ServiceRequest) {
        signal.throwIfAborted();
        sent.push(`${method} ${path}`);
        return { body: { token: "t" } as never, isEffective: true };
      },
    },
    details: { email: "o@example.com", password: "p" },
    signal: stopping.signal,
  });
  stopping.abort();
  await session.logOut();
  expect(sent).toEqual(["POST session/", "DELETE session/"]);
});

test.each([
  ["owner", "OWNER_EMAIL", "Give both OWNER_EMAIL and OWNER_PASSWORD, or neither."],
  ["operator", "OPERATOR_PASSWORD", "Give both OPERATOR_EMAIL and OPERATOR_PASSWORD, or neither."],
] as const)(
  "the log-in of the %s with %s alone: refused, because another person would act",
  async (party, name, sentence) => {
    vi.stubEnv(name, "only-this");
    vi.stubEnv("DATA_DIR", "/there/is/none");
    await expect(asPerson(party, { "base-url": "http://127.0.0.1:9" }, async () => undefined)).rejects.toThrow(
      sentence,
    );
    vi.unstubAllEnvs();
  },
);

test("a session that is stored and not yet effective: the command waits for it, and then ends it without an error", async () => {
  const requests: string[] = [];
  const service = createServer(({ method = "" }, response) => {
    requests.push(method);
    const answer = (status: number, body: object, headers: Record<string, string> = {}): void =>
      void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
    const notEffective = { "x-effective": "false" };
    if (method === "POST") return answer(202, { token: "token", effective: false }, notEffective);
    if (method === "DELETE") return answer(202, { effective: false }, notEffective);
    if (requests.filter((each) => each === "GET").length > 1) return answer(200, {});
    return answer(401, { code: "credential_invalid", detail: "Unknown.", request_id: "1" });
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  const session = await openSession({
    transport: createTransport({ baseUrl, api: "backoffice", pace: async () => undefined }),
    details: { email: "owner@sandbox.example", password: "a long pass phrase" },
    signal: new AbortController().signal,
  });
  await session.logOut();
  expect(requests).toEqual(["POST", "GET", "GET", "DELETE"]);
  await new Promise((resolve) => service.close(resolve));
});
