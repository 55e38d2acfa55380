/** Forwards callbacks from HTTP to the bus as the gateway does. It records them, so that a test can send one again. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Bus } from "../../services/bus/connection.ts";
import { receiveCallback } from "../../services/bus/messages/callbacks.ts";
import { call } from "../../services/bus/operation.ts";
import { SIGNATURE_HEADER } from "../../services/bus/signature-header.ts";

export interface SeenCallback {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly answer: { readonly status: number; readonly body: string };
}

export interface CallbackGateway {
  readonly url: string;
  readonly seen: SeenCallback[];
  stop(): Promise<void>;
}

export async function startCallbackGateway(bus: Bus): Promise<CallbackGateway> {
  const seen: SeenCallback[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
      const body = Buffer.concat(chunks);
      const path = request.url ?? "";
      const configId = Number(/^\/api\/providers\/v1\/(\d+)\/callback\/$/.exec(path)?.[1]);
      const headers = { [SIGNATURE_HEADER]: String(request.headers[SIGNATURE_HEADER] ?? "") };
      const asked = { configId, headers, bodyBase64: body.toString("base64"), address: "127.0.0.1" };
      const answer = await call(bus.nc, receiveCallback, asked).catch(() => ({ status: 503, body: "{}" }));
      seen.push({ path, headers, body: body.toString("utf8"), answer });
      response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body);
    })();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
