import { createServer } from "node:net";
import { describe, expect, inject, it } from "vitest";
import { connectBus } from "../../services/bus/connection.ts";
import { refuseOldServer } from "../../services/bus/nats-server.ts";
import { freePort } from "../support/free-port.ts";
import { QUIET } from "../support/quiet-log.ts";
import { runProgram } from "../support/running-program.ts";

/** A server that greets like a nats-server of this version, and answers pings. Returns its address. */
async function serverOfVersion(version: string): Promise<{ url: string; close: () => void }> {
  const info = { server_id: "test", version, headers: true, max_payload: 1_048_576, proto: 1, jetstream: true };
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.write(`INFO ${JSON.stringify(info)}\r\n`);
    socket.on("data", (chunk) => {
      if (chunk.includes("PING\r\n")) socket.write("PONG\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server listens on no port.");
  return { url: `nats://127.0.0.1:${address.port}`, close: () => server.close() };
}

describe("the version of nats-server", () => {
  it.each(["2.9.10", "2.10.27", "2.11.99", "1.99.0", "", "unknown"])("%s: refused", (version) => {
    expect(() => refuseOldServer(version, "127.0.0.1:4222")).toThrow(expect.objectContaining({ code: "nats_too_old" }));
  });

  it.each(["2.12.0", "2.12.0-RC.1", "2.15.1", "3.0.0", "10.0.0"])("%s: accepted", (version) => {
    expect(() => refuseOldServer(version, "127.0.0.1:4222")).not.toThrow();
  });

  it("connectBus: a server that is too old: refused with one sentence", async () => {
    const server = await serverOfVersion("2.11.9");
    const connecting = connectBus({ url: server.url, name: "test", log: QUIET, withinMs: 300 });
    await expect(connecting).rejects.toMatchObject({
      code: "nats_too_old",
      message: `The nats-server at ${new URL(server.url).host} (NATS_URL) has the version 2.11.9, and this service needs 2.12.0 or newer: upgrade it, or set NATS_URL to another one.`,
    });
    server.close();
  });

  it("connectBus: a single server whose JetStream does not answer: one sentence with the next step", async () => {
    const server = await serverOfVersion("2.15.1");
    const connecting = connectBus({ url: server.url, name: "test", log: QUIET, withinMs: 300 });
    await expect(connecting).rejects.toMatchObject({
      code: "nats_stores_nothing",
      message: `The NATS at ${new URL(server.url).host} (NATS_URL) runs, but stores nothing, as after its disk was full: free space on that disk, and start nats-server again.`,
    });
    server.close();
  });

  it("connectBus: a server without JetStream: refused with one sentence", async () => {
    const port = await freePort();
    const server = runProgram(inject("natsBinary").path, ["--addr", "127.0.0.1", "--port", String(port)]);
    await server.waitFor(/Server is ready/);
    const connecting = connectBus({ url: `nats://127.0.0.1:${port}`, name: "test", log: QUIET, withinMs: 300 });
    await expect(connecting).rejects.toMatchObject({
      code: "nats_without_jetstream",
      message: `The NATS at 127.0.0.1:${port} (NATS_URL) cannot be used: JetStream is switched off there; switch it on in the server's configuration.`,
    });
    server.process.kill("SIGINT");
    await server.ended;
  });
});
