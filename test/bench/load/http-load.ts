/**
 * A closed-loop HTTP load over keep-alive sockets: each connection sends its next request when the answer to the last
 * has arrived. Requests are ready-made buffers and answers are only framed, so that the generator costs little beside
 * the server it measures. Runs in a process of its own.
 */
import { connect, type Socket } from "node:net";
import { clockMs } from "./clock.ts";

export interface LoadResult {
  readonly requests: number;
  readonly elapsedMs: number;
  /** How often each status was answered. */
  readonly statuses: Record<string, number>;
  readonly latenciesUs: Float64Array;
  /** When each request was sent, on the clock that the processes of one machine share. */
  readonly sentAtMs: Float64Array;
}

export interface LoadPlan {
  readonly port: number;
  readonly connections: number;
  readonly requests: readonly Buffer[];
  /** Called with each answer's head, in the order of `requests`; for learning ETags before a measured run. */
  readonly onHead?: (index: number, head: string) => void;
  /** Called with each answer's body, in the order in which the answers arrive. */
  readonly onBody?: (index: number, body: string) => void;
  /** Each connection comes from another address of this machine (127.0.0.2 …), as different senders would (Linux). */
  readonly isFromManyAddresses?: boolean;
}

/** The last part of the first address; 127.0.0.1 is everybody's. */
const FIRST_OTHER_ADDRESS = 2;
const HEAD_END = Buffer.from("\r\n\r\n");

/** Sends every request once; rejects when a connection breaks, because a measurement with holes is none. */
export function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const latenciesUs = new Float64Array(plan.requests.length);
  const sentAtMs = new Float64Array(plan.requests.length);
  const statuses: Record<string, number> = {};
  let next = 0;
  let done = 0;
  const startedAtMs = performance.now();
  return new Promise((resolve, reject) => {
    const sockets: Socket[] = [];
    const finish = (): void => {
      for (const socket of sockets) socket.destroy();
      resolve({ requests: done, elapsedMs: performance.now() - startedAtMs, statuses, latenciesUs, sentAtMs });
    };
    for (let i = 0; i < Math.min(plan.connections, plan.requests.length); i += 1) {
      const socket = connect({
        port: plan.port,
        host: "127.0.0.1",
        noDelay: true,
        ...(plan.isFromManyAddresses === true ? { localAddress: `127.0.0.${FIRST_OTHER_ADDRESS + i}` } : {}),
      });
      sockets.push(socket);
      let index = -1;
      let pending: Buffer | null = null;
      const sendNext = (): void => {
        index = next;
        next += 1;
        const request = plan.requests[index];
        if (request === undefined) return;
        sentAtMs[index] = clockMs();
        socket.write(request);
      };
      socket.on("connect", sendNext);
      socket.on("error", reject);
      socket.on("close", () => {
        if (done < plan.requests.length) reject(new Error(`The server closed a connection after ${done} answers.`));
      });
      socket.on("data", (chunk: Buffer) => {
        const data: Buffer = pending === null ? chunk : Buffer.concat([pending, chunk]);
        const total = answerLength(data);
        if (total === undefined || data.length < total) {
          pending = data;
          return;
        }
        pending = null;
        latenciesUs[index] = (clockMs() - (sentAtMs[index] ?? 0)) * 1_000;
        const status = data.toString("latin1", 9, 12);
        statuses[status] = (statuses[status] ?? 0) + 1;
        plan.onHead?.(index, data.toString("latin1", 0, data.indexOf(HEAD_END)));
        plan.onBody?.(index, data.toString("utf8", data.indexOf(HEAD_END) + HEAD_END.length));
        done += 1;
        if (done === plan.requests.length) finish();
        else sendNext();
      });
    }
  });
}

/** The length of one whole answer, or undefined while its head is incomplete. */
export function answerLength(data: Buffer): number | undefined {
  const headEnd = data.indexOf(HEAD_END);
  if (headEnd === -1) return undefined;
  const head = data.toString("latin1", 0, headEnd);
  const match = /\r\ncontent-length: (\d+)/i.exec(head);
  return headEnd + 4 + Number(match?.[1] ?? 0);
}

/** The bytes of a poll. */
export function pollRequest(path: string, credential: string, etag?: string): Buffer {
  const condition = etag === undefined ? "" : `If-None-Match: ${etag}\r\n`;
  return Buffer.from(
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${credential}\r\n${condition}\r\n`,
  );
}

/** The bytes of a provider's callback. */
export function callbackRequest(path: string, signature: string, body: string): Buffer {
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
  return Buffer.from(
    `${head}X-Provider-Signature: ${signature}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
