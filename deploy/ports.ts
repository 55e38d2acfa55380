/** Checks whether this process can listen on a port, finds a free port, and keeps a port for the next start. */
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { z } from "zod";
import { reasonOf } from "../services/runtime/fault.ts";
import { errorCode, UserError } from "../services/runtime/user-error.ts";
import { writePrivateJson } from "./data-folder.ts";
import { deployLimits } from "./limits.ts";

/** Resolves to the error of listening on that address, or undefined when it works. The socket is closed again. */
export function listenError(host: string, port: number): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error) => resolve(error));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/**
 * Throws UserError `port_taken`, `port_forbidden` or `host_unavailable` when it is not possible to listen there. The sentence
 * names the variables.
 */
export async function checkPort(host: string, port: number, variables: { port: string; host: string }): Promise<void> {
  const error = await listenError(host, port);
  if (error === undefined) return;
  const code = errorCode(error);
  if (code === "EADDRINUSE") {
    throw new UserError(`Port ${port} on ${host} is taken by another program; set ${variables.port} to a free one.`, {
      code: "port_taken",
    });
  }
  if (code === "EACCES") {
    throw new UserError(`This user may not listen on port ${port}; set ${variables.port} to one above 1023.`, {
      code: "port_forbidden",
    });
  }
  const advice = `set ${variables.host} to an address of this machine`;
  throw new UserError(`It is not possible to listen on ${host}: ${reasonOf(error)}; ${advice}.`, {
    code: "host_unavailable",
  });
}

/**
 * Ports for embedded servers, and for the HTTP API when PORT is 0. They are below the range from which systems take the
 * ports of outgoing connections (32768 and up on Linux, 49152 and up elsewhere). A client that reconnects to a stopped
 * server on a port in that range may get the same port, connect to itself, and prevent the server from starting again.
 */
const FIRST_PORT = 20_000;
const LAST_PORT = 29_999;

/** A port on that address of this machine that no process listens on at this moment. Throws UserError `no_free_port`. */
export async function freePort(host = "127.0.0.1"): Promise<number> {
  for (let attempt = 0; attempt < deployLimits.portTries; attempt += 1) {
    const port = randomInt(FIRST_PORT, LAST_PORT + 1);
    if ((await listenError(host, port)) === undefined) return port;
  }
  throw new UserError(`There is no free port between ${FIRST_PORT} and ${LAST_PORT} on ${host}.`, {
    code: "no_free_port",
  });
}

/**
 * A free port on this machine that the next start takes again, so that addresses with it, such as a QR code on a guest's
 * phone, stay valid. It is stored in `ports.json` of the data folder. When another process listens on it by now, or the file
 * is damaged, another port is chosen and stored.
 */
export async function keptPort(dataDir: string, name: string): Promise<number> {
  const path = join(dataDir, "ports.json");
  const ports = readPorts(path);
  const known = ports[name];
  if (known !== undefined && (await listenError("127.0.0.1", known)) === undefined) return known;
  const port = await freePort();
  writePrivateJson(path, { ...ports, [name]: port });
  return port;
}

function readPorts(path: string): Readonly<Record<string, number>> {
  try {
    return z.record(z.string(), z.int().min(1).max(65_535)).parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return {};
  }
}
