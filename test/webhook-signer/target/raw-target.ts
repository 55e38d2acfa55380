/** Webhook targets whose answers a test writes byte by byte, and a sender that may call them. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import type { Sender, SendResult } from "../../../services/webhook-signer/http/send-result.ts";
import { createSender, type SenderSettings } from "../../../services/webhook-signer/http/sender.ts";
import { createAuthority } from "../../support/certificates.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/temporary-folder.ts";

/** Called for each chunk, with all that its connection has received so far. */
export type OnBytes = (socket: Socket, soFar: string) => void;

export interface RawTarget {
  readonly port: number;
  /** What each connection has received, in the order in which the connections were opened. */
  readonly received: readonly string[];
  readonly sockets: readonly Socket[];
  close(): Promise<void>;
}

export const authority = createAuthority();
let folder: TemporaryFolder | undefined;

/** The path of a file with the authority's certificate. `removeFolder` deletes the file. */
export function caFile(): string {
  if (folder === undefined) {
    folder = temporaryFolder("webhook-target");
    writeFileSync(join(folder.path, "ca.pem"), authority.cert);
  }
  return join(folder.path, "ca.pem");
}

export function removeFolder(): void {
  folder?.remove();
  folder = undefined;
}

const localhost = authority.issue({ names: ["localhost", "127.0.0.1"] });

/** A target behind TLS. Its certificate is for localhost unless the options have another one. */
export async function startTlsTarget(onBytes: OnBytes, options: TlsOptions = {}): Promise<RawTarget> {
  return await startServer((onSocket) => createTlsServer({ ...localhost, ...options }, onSocket), onBytes);
}

export async function startTarget(onBytes: OnBytes): Promise<RawTarget> {
  return await startServer((onSocket) => createTcpServer(onSocket), onBytes);
}

async function startServer(
  create: (onSocket: (socket: Socket) => void) => Server,
  onBytes: OnBytes,
): Promise<RawTarget> {
  const received: string[] = [];
  const sockets: Socket[] = [];
  const server = create((socket) => {
    const at = sockets.push(socket) - 1;
    received.push("");
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      received[at] += chunk.toString("latin1");
      onBytes(socket, received[at] ?? "");
    });
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    received,
    sockets,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Answers each request whose body is `{}` with these bytes. */
export const answering =
  (answer: string): OnBytes =>
  (socket, soFar) => {
    if (soFar.endsWith("\r\n\r\n{}")) socket.write(answer);
  };

export const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

export const senderWith = (settings: SenderSettings = {}): Sender => createSender({ caFile: caFile(), ...settings });

/** Sends `{}` to a target on this machine, with loopback allowed. The request must not be sent after `endsAtMs`. */
export async function sendHere(
  sender: Sender,
  url: string,
  signal?: AbortSignal,
  endsAtMs?: number,
): Promise<SendResult> {
  return await sender.send({
    url,
    headers: { "content-type": "application/json" },
    body: "{}",
    loopback: "allowed",
    signal,
    endsAtMs,
  });
}
