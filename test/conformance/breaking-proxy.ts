/** A proxy in front of the service: it breaks the answers in one way. For throttles, each proxy is another client address. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import type { Answer, BrokenService, Passing } from "./broken-service.ts";

export interface BreakingProxy {
  readonly baseUrl: string;
  stop(): Promise<void>;
}

export async function startBreakingProxy(
  target: string,
  {
    breaks,
    holds,
  }: Partial<Pick<BrokenService, "breaks">> & {
    /** The proxy forwards an answer only when this promise resolves. */
    readonly holds?: (passing: Passing) => Promise<void>;
  },
  address: string,
): Promise<BreakingProxy> {
  const memory = new Map<string, unknown>();
  const answerFor = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request);
    const upstream = await fetch(target + (request.url ?? "/"), {
      method: request.method ?? "GET",
      headers: { ...headersOf(request), "x-forwarded-for": address },
      body: body.length === 0 ? null : new Uint8Array(body),
      redirect: "manual",
    });
    const text = await upstream.text();
    const answer: Answer = {
      status: upstream.status,
      headers: Object.fromEntries(
        [...upstream.headers].filter(
          ([name]) => !["content-length", "connection", "transfer-encoding", "keep-alive"].includes(name),
        ),
      ),
      body: text === "" ? undefined : (JSON.parse(text) as Record<string, unknown>),
    };
    const { method = "GET", url = "/" } = request;
    const path = new URL(url, target).pathname;
    const passing = { method, path, headers: headersOf(request), requestText: body.toString() };
    breaks?.(passing, answer, memory);
    await holds?.(passing);
    response.writeHead(answer.status, answer.headers);
    response.end(answer.body === undefined ? undefined : JSON.stringify(answer.body));
  };
  const server = createServer((request, response) => void answerFor(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function headersOf(request: IncomingMessage): Record<string, string> {
  const ends = ["host", "connection", "content-length", "transfer-encoding", "keep-alive", "expect"];
  return Object.fromEntries(
    Object.entries(request.headers).flatMap(([name, value]) =>
      ends.includes(name) || value === undefined ? [] : [[name, String(value)]],
    ),
  );
}
