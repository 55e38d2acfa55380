/** A provider with the API of the sandbox provider. A test sets its answers. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProvidersWorld } from "./providers-world.ts";

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

type Answer = (asked: Asked) => object | Promise<object>;

export interface AnsweringProvider {
  /** The requests that it has received, in order. */
  readonly asked: Asked[];
  answer: Answer;
  /** From now on the service asks this provider instead of the sandbox. */
  takeOver(world: ProvidersWorld): Promise<void>;
  /** The service asks the sandbox again. */
  giveBack(world: ProvidersWorld): Promise<void>;
  stop(): Promise<void>;
}

export async function startAnsweringProvider(): Promise<AnsweringProvider> {
  const asked: Asked[] = [];
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const each = { method: request.method ?? "", path: request.url ?? "", body: await bodyOf(request) };
    asked.push(each);
    const answer = await provider.answer(each);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  };
  const server = createServer((request, response) => {
    void respond(request, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const useUrl = async (world: ProvidersWorld, url: string): Promise<void> => {
    world.environment["SANDBOX_PROVIDER_URL"] = url;
    await world.restartProviders();
  };
  const provider: AnsweringProvider = {
    asked,
    answer: () => ({}),
    takeOver: (world) => useUrl(world, `http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    giveBack: (world) => useUrl(world, world.sandboxUrl),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return provider;
}

async function bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
}
