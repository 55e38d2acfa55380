/**
 * Trust in one certificate beside the authorities of Node: that of a service which speaks TLS itself. No authority need have
 * signed it, and its name may lead elsewhere: what the server shows has to be this certificate, byte for byte.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { checkServerIdentity, getCACertificates } from "node:tls";
import { Agent, buildConnector, setGlobalDispatcher } from "undici";

/** From now on `fetch` trusts it. The file is read for each connection: a service that is started again shows a renewed one. */
export function trustCertificate(certificateFile: string): void {
  const connect: buildConnector.connector = (target, done) => {
    try {
      buildConnector(trustOf(readFileSync(certificateFile, "utf8")))(target, done);
    } catch (error) {
      done(error instanceof Error ? error : new Error("The certificate cannot be read."), null);
    }
  };
  setGlobalDispatcher(new Agent({ connect }));
}

function trustOf(pem: string): buildConnector.BuildOptions {
  const trusted = new X509Certificate(pem);
  return {
    ca: [...getCACertificates("default"), pem],
    // Without its authority the chain ends at the certificate itself.
    allowPartialTrustChain: true,
    checkServerIdentity: (host, shown) =>
      shown.raw.equals(trusted.raw) ? undefined : checkServerIdentity(host, shown),
  };
}
