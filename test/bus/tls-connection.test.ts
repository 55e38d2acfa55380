/** A bus over TLS: the error has the fault of a certificate. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { connectBus } from "../../services/bus/connection.ts";
import { type Certificate, selfSigned } from "../support/certificates.ts";
import { freePort } from "../support/free-port.ts";
import { QUIET } from "../support/quiet-log.ts";
import { type RunningProgram, runProgram } from "../support/running-program.ts";
import { startNats, type TestServer } from "../support/servers.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describe("a bus with tls:// in its address", () => {
  const folder = temporaryFolder("tls");
  let plain: TestServer;
  let server: RunningProgram;
  let port: number;
  beforeAll(async () => {
    plain = await startNats();
    port = await freePort();
    const certificate: Certificate = selfSigned({ names: ["127.0.0.1"] });
    const [cert, key, config] = ["cert.pem", "key.pem", "nats.conf"].map((name) => join(folder.path, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(cert, certificate.cert);
    writeFileSync(key, certificate.key);
    const tls = `tls { cert_file: ${JSON.stringify(cert)}, key_file: ${JSON.stringify(key)} }`;
    writeFileSync(config, `listen: "127.0.0.1:${port}"\n${tls}\n`);
    server = runProgram(inject("natsBinary").path, ["--config", config]);
    await server.waitFor(/Server is ready/);
  });
  afterAll(async () => {
    server.process.kill("SIGINT");
    await server.ended;
    await plain.stop();
    folder.remove();
  });

  const connecting = (url: string) => connectBus({ url, name: "test", log: QUIET, withinMs: 300 });

  it("a certificate of no trusted authority: the sentence contains the reason and the next step", async () => {
    await expect(connecting(`tls://127.0.0.1:${port}`)).rejects.toMatchObject({
      code: "nats_unreachable",
      message: `The NATS at 127.0.0.1:${port} (NATS_URL) cannot be used: no authority that this machine trusts has signed the server's certificate (DEPTH_ZERO_SELF_SIGNED_CERT); name the authority's certificate in NATS_CA_FILE.`,
    });
  });

  it("a server without TLS: the sentence contains the reason and the next step", async () => {
    await expect(connecting(plain.url.replace("nats:", "tls:"))).rejects.toMatchObject({
      code: "nats_unreachable",
      message: `The NATS at 127.0.0.1:${plain.port} (NATS_URL) cannot be used: the server does not speak TLS there (EPROTO); switch TLS on at the server, or leave it out of the address.`,
    });
  });
});
