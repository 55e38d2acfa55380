import { execFile } from "node:child_process";
import { mkdtempSync, rmdirSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, createServer as createTlsServer, type TlsOptions } from "node:tls";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { BusDownError } from "../../services/bus/connection.ts";
import { cannotBeUsed, cannotGoOn, FAULTS, faultOf, reasonOf } from "../../services/runtime/fault.ts";
import { createAuthority, selfSigned } from "../support/certificates.ts";
import { onlyWhere } from "../support/only-where.ts";

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0).toReversed()) step();
});

const coded = (code: string, more: object = {}): Error => Object.assign(new Error("something"), { code, ...more });
const thrownBy = (act: () => void): unknown => {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
};

async function listening(server: ReturnType<typeof createServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  undo.push(() => server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** The error of a TLS client at a server with this certificate. */
async function tlsError(options: TlsOptions, ca?: string, servername = "one.example"): Promise<unknown> {
  const server = createTlsServer(options, (socket) => socket.on("error", () => undefined));
  server.on("tlsClientError", () => undefined);
  const port = await listening(server);
  return await new Promise((resolve) => {
    const socket = connectTls({ host: "127.0.0.1", port, servername, ...(ca === undefined ? {} : { ca }) });
    socket.once("error", resolve);
    socket.once("secureConnect", () => {
      socket.destroy();
      resolve(undefined);
    });
  });
}

describe("the words for a code", () => {
  it.each(Object.entries(FAULTS))("%s: a clause and a next step, without code or full stop", (code, words) => {
    for (const text of [words.because, words.next]) {
      expect(text).toMatch(/^[a-z][^\n]*[^.]$/);
      expect(text).not.toContain(code);
    }
    expect(cannotBeUsed("The thing (SETTING)", coded(code))).toBe(
      `The thing (SETTING) cannot be used: ${words.because} (${code}); ${words.next}.`,
    );
  });

  it("a missing file, a folder instead of a file: found in the errors of the system", () => {
    const folder = mkdtempSync(join(tmpdir(), "fault-"));
    undo.push(() => rmdirSync(folder));
    const missing = join(folder, "missing", "file");
    const error = thrownBy(() => writeFileSync(missing, ""));
    expect(cannotGoOn("registry", error)).toBe(
      `registry cannot go on: there is no such file or folder (ENOENT, ${missing}); correct the path.`,
    );
    expect(faultOf(thrownBy(() => writeFileSync(folder, "")))).toMatchObject({ code: "EISDIR" });
  });

  it.runIf(onlyWhere(process.platform === "linux", "the error of a full disk"))("a full disk: found", () => {
    expect(reasonOf(thrownBy(() => writeFileSync("/dev/full", "x")))).toBe("the disk is full (ENOSPC)");
  });

  it("a program that may not run: EACCES with the program's path", async () => {
    const error: unknown = await promisify(execFile)("/etc/passwd").catch((cause: unknown) => cause);
    expect(faultOf(error)).toMatchObject({ code: "EACCES", place: "/etc/passwd" });
  });

  it("an address without a server, and one in use: the sentence has the address", async () => {
    const taken = createServer();
    const port = await listening(taken);
    const second = createServer();
    const error = await new Promise((resolve) => second.once("error", resolve).listen(port, "127.0.0.1"));
    expect(cannotGoOn("gateway", error)).toBe(
      `gateway cannot go on: another program listens at that address (EADDRINUSE, 127.0.0.1:${port}); stop that program, or choose another port.`,
    );
    const refused = await new Promise((resolve) => connect(1, "127.0.0.1").once("error", resolve));
    expect(faultOf(refused)).toMatchObject({ code: "ECONNREFUSED", place: "127.0.0.1:1" });
  });

  it("a certificate that is untrusted, expired or for another name: the words state which", async () => {
    const authority = createAuthority();
    const long = 30 * 24 * 3_600_000;
    const expired = authority.issue({
      names: ["one.example"],
      notBefore: new Date(Date.now() - 2 * long),
      notAfter: new Date(Date.now() - long),
    });
    expect(faultOf(await tlsError(selfSigned({ names: ["one.example"] })))?.because).toMatch(/no authority/);
    expect(faultOf(await tlsError(authority.issue({ names: ["one.example"] })))?.because).toMatch(/no authority/);
    expect(faultOf(await tlsError(expired, authority.cert))?.because).toMatch(/has expired/);
    const other = authority.issue({ names: ["two.example"] });
    expect(faultOf(await tlsError(other, authority.cert))?.because).toMatch(/another name/);
    expect(await tlsError(authority.issue({ names: ["one.example"] }), authority.cert)).toBeUndefined();
  });

  it("a code in the cause of an error, or among several errors: found", () => {
    expect(faultOf(new Error("outer", { cause: coded("ENOSPC") }))).toMatchObject({ code: "ENOSPC" });
    expect(faultOf(new AggregateError([new Error("first"), coded("ENOTFOUND")]))).toMatchObject({ code: "ENOTFOUND" });
  });

  it("an error that is its own cause: the search ends", () => {
    const error = new Error("round");
    error.cause = error;
    expect(faultOf(error)).toBeUndefined();
  });

  it("a code without words: the sentence has PostgreSQL's answer, or the code", () => {
    const refusal = coded("22023", { message: 'invalid value for parameter "x"', severity: "FATAL" });
    expect(cannotBeUsed("The PostgreSQL", refusal)).toBe(
      'The PostgreSQL cannot be used: PostgreSQL answers "invalid value for parameter "x"" (22023).',
    );
    expect(cannotBeUsed("The file", coded("EXDEV"))).toBe("The file cannot be used: the error is EXDEV.");
    expect(cannotGoOn("registry", new TypeError("x"))).toBeUndefined();
    expect(cannotGoOn("relay", new BusDownError())).toBe(
      "relay cannot go on: the connection to NATS is down (bus_down); check the NATS servers, and start a process again that has ended.",
    );
  });
});
