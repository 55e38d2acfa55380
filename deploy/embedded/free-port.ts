import { randomInt } from "node:crypto";
import { UserError } from "../../services/runtime/user-error.ts";
import { deployLimits } from "../limits.ts";
import { listenError } from "../port-check.ts";

/**
 * Ports for embedded servers, and for the HTTP API where any will do. They lie below the range from which systems take the ports of outgoing connections
 * (32768 and up on Linux, 49152 and up elsewhere): a client that redials a stopped server on such a port may be given
 * that very port, connect to itself, and keep the server from ever coming back.
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
