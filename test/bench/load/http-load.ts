/**
 * A closed-loop HTTP load over keep-alive sockets: each connection sends its next request when the answer to the last
 * has arrived. Requests are ready-made buffers and answers are only framed, so that the generator costs little beside
 * the server it measures. Runs in a process of its own.
 */
import { connect, type Socket } from "node:net";

export interface LoadResult {
  readonly requests: number;
  readonly elapsedMs: number;
  /** How often each status was answered. */
  readonly statuses: Record<string, number>;
  readonly latenciesUs: Float64Array;
}

export interface LoadPlan {
  readonly port: number;
  readonly connections: number;
  readonly requests: readonly Buffer[];
  /** Called with each answer's head, in the order of `requests`; for learning ETags before a measured run. */
  readonly onHead?: (index: number, head: string) => void;
}

const HEAD_END = Buffer.from("\r\n\r\n");

/** Sends every request once; rejects when a connection breaks, because a measurement with holes is none. */
export function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const latenciesUs = new Float64Array(plan.requests.length);
  const statuses: Record<string, number> = {};
  let next = 0;
  let done = 0;
  const startedAtMs = performance.now();
  return new Promise((resolve, reject) => {
    const sockets: Socket[] = [];
    const finish = (): void => {
      for (const socket of sockets) socket.destroy();
      resolve({ requests: done, elapsedMs: performance.now() - startedAtMs, statuses, latenciesUs });
    };
    for (let i = 0; i < Math.min(plan.connections, plan.requests.length); i += 1) {
      const socket = connect({ port: plan.port, host: "127.0.0.1", noDelay: true });
      sockets.push(socket);
      let index = -1;
      let sentAtMs = 0;
      let pending: Buffer | null = null;
      const sendNext = (): void => {
        index = next;
        next += 1;
        const request = plan.requests[index];
        if (request === undefined) return;
        sentAtMs = performance.now();
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
        latenciesUs[index] = (performance.now() - sentAtMs) * 1_000;
        const status = data.toString("latin1", 9, 12);
        statuses[status] = (statuses[status] ?? 0) + 1;
        plan.onHead?.(index, data.toString("latin1", 0, data.indexOf(HEAD_END)));
        done += 1;
        if (done === plan.requests.length) finish();
        else sendNext();
      });
    }
  });
}

/** The length of one whole answer, or undefined while its head is incomplete. */
function answerLength(data: Buffer): number | undefined {
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
