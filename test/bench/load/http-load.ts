/**
 * A closed-loop HTTP load over keep-alive sockets: each connection sends its next request when the answer to the last one
 * has arrived. The generator must need little CPU time beside the server. So its requests are prepared buffers, and it reads
 * only the length and the status of an answer.
 */
import { connect, type Socket } from "node:net";
import { clockMs } from "./clock.ts";

export interface LoadResult {
  readonly requests: number;
  readonly elapsedMs: number;
  /** How many answers had each status. */
  readonly statuses: Record<string, number>;
  readonly latenciesUs: Float64Array;
  /** When each request was sent, by the clock that all processes of one machine share. */
  readonly sentAtMs: Float64Array;
}

export interface LoadPlan {
  readonly port: number;
  readonly connections: number;
  readonly requests: readonly Buffer[];
  /** Called with each answer's head and the index of its request. The polls learn their ETags by it before a measured run. */
  readonly onHead?: (index: number, head: string) => void;
  /** Called with each answer's body and the index of its request. */
  readonly onBody?: (index: number, body: string) => void;
  /** Each connection comes from another address of this machine (127.0.0.2 …), as different senders would (Linux). */
  readonly isFromManyAddresses?: boolean;
}

/** The last number of the first sender's address. Other connections of this machine come from 127.0.0.1. */
const FIRST_SENDER_ADDRESS = 2;
const HEAD_END = Buffer.from("\r\n\r\n");

/** Sends each request once. Rejects when a connection breaks, because a result that lacks answers would be wrong. */
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
        ...(plan.isFromManyAddresses === true ? { localAddress: `127.0.0.${FIRST_SENDER_ADDRESS + i}` } : {}),
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

/** The length of the whole answer in bytes, or undefined while its head is incomplete. */
export function answerLength(data: Buffer): number | undefined {
  const headEnd = data.indexOf(HEAD_END);
  if (headEnd === -1) return undefined;
  const head = data.toString("latin1", 0, headEnd);
  const match = /\r\ncontent-length: (\d+)/i.exec(head);
  return headEnd + HEAD_END.length + Number(match?.[1] ?? 0);
}

/** The bytes of a poll request. */
export function pollRequest(path: string, credential: string, etag?: string): Buffer {
  const condition = etag === undefined ? "" : `If-None-Match: ${etag}\r\n`;
  return Buffer.from(
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${credential}\r\n${condition}\r\n`,
  );
}

/** The bytes of a provider's callback request. */
export function callbackRequest(path: string, signature: string, body: string): Buffer {
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
  return Buffer.from(
    `${head}X-Provider-Signature: ${signature}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
