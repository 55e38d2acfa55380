/** Ports for the servers that a test starts. Two files that run at the same time never draw the same port. */
import { randomInt } from "node:crypto";
import { listenError } from "../../deploy/ports.ts";

/** Below the ports that the product draws (`deploy/ports.ts`), so that no process under test takes one. */
const FIRST_PORT = 10_000;
/** Each worker of the test runner draws from this many ports. No other worker draws the same ones. */
const PORTS_PER_WORKER = 2_000;
const WORKERS = 5;
const TRIES = 100;
/** This many of the newest ports are not drawn again. A test file uses its port within seconds. */
const KEPT = 200;

const recentPorts: number[] = [];

/** A free port of 127.0.0.1 that this function has not returned lately. */
export async function freePort(): Promise<number> {
  const worker = Number(process.env["VITEST_POOL_ID"] ?? 0) % WORKERS;
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const port = FIRST_PORT + worker * PORTS_PER_WORKER + randomInt(PORTS_PER_WORKER);
    if (recentPorts.includes(port) || (await listenError("127.0.0.1", port)) !== undefined) continue;
    recentPorts.push(port);
    if (recentPorts.length > KEPT) recentPorts.shift();
    return port;
  }
  throw new Error(`Worker ${worker} has no free port.`);
}

/**
 * Settings of `npm start` with ports that no other test draws during the start. With PORT=0, the start itself draws a port
 * and listens on it half a minute later.
 */
export async function startPorts(): Promise<{ PORT: string; SANDBOX_PROVIDER_PORT: string }> {
  return { PORT: String(await freePort()), SANDBOX_PROVIDER_PORT: String(await freePort()) };
}
