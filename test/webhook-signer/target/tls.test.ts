/** Certificates and TLS versions that the sender refuses, also when the environment would allow them. */
import type { TlsOptions } from "node:tls";
import { afterAll, afterEach, expect, onTestFinished, test } from "vitest";
import { createAuthority, selfSigned } from "../../support/certificates.ts";
import { answering, authority, OK, removeFolder, senderWith, sendHere, startTlsTarget } from "./raw-target.ts";

afterAll(removeFolder);

const HOUR_MS = 3_600_000;
const ago = (hours: number): Date => new Date(Date.now() - hours * HOUR_MS);
const OLD = "DEFAULT@SECLEVEL=0";

async function sendTo(options: TlsOptions, host = "localhost") {
  const target = await startTlsTarget(answering(OK), options);
  const sender = senderWith();
  onTestFinished(async () => {
    await sender.close();
    await target.close();
  });
  const result = await sendHere(sender, `https://${host}:${target.port}/`);
  return { result, received: target.received.join("") };
}

afterEach(() => {
  delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
});

test.each<[string, TlsOptions, string?]>([
  ["a good certificate", {}],
  ["a certificate for the address itself", {}, "127.0.0.1"],
  ["TLS 1.2", { maxVersion: "TLSv1.2" }],
])("a target with %s: accepted", async (_what, options, host) => {
  expect((await sendTo(options, host)).result).toMatchObject({ error: null, tlsMs: expect.any(Number) });
});

const REFUSED: [string, TlsOptions, string?][] = [
  ["an expired certificate", authority.issue({ names: ["localhost"], notBefore: ago(48), notAfter: ago(1) })],
  [
    "a certificate that is not valid yet",
    authority.issue({ names: ["localhost"], notBefore: ago(-1), notAfter: ago(-48) }),
  ],
  ["a certificate for another host", authority.issue({ names: ["hooks.example.com"] })],
  ["a certificate for a name, where an address is called", authority.issue({ names: ["localhost"] }), "127.0.0.1"],
  ["a certificate for another address", authority.issue({ names: ["127.0.0.2"] }), "127.0.0.1"],
  ["a self-signed certificate", selfSigned({ names: ["localhost"] })],
  ["a certificate of an unknown authority", createAuthority().issue({ names: ["localhost"] })],
  [
    "a certificate of an unknown authority of the same name",
    createAuthority("Test authority").issue({ names: ["localhost"] }),
  ],
  ["TLS 1.0", { minVersion: "TLSv1", maxVersion: "TLSv1", ciphers: OLD }],
  ["TLS 1.1", { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: OLD }],
  ["HTTP/2 alone", { ALPNProtocols: ["h2"] }],
];

test.each(REFUSED)("a target with %s: refused before a byte of the request is sent", async (_what, options, host) => {
  const { result, received } = await sendTo(options, host);
  expect(result).toMatchObject({ error: "tls_failed", status: null, tlsMs: null });
  expect(received).toBe("");
});

test.each(REFUSED)(
  "a target with %s: refused also where NODE_TLS_REJECT_UNAUTHORIZED is 0",
  async (_what, options, host) => {
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    expect((await sendTo(options, host)).result).toMatchObject({ error: "tls_failed" });
  },
);
