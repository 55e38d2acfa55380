/**
 * Trust in one certificate beside the authorities of Node: that of a gateway which speaks TLS itself. No authority need have
 * signed it, and its name may lead elsewhere: what the server shows has to be this certificate, byte for byte.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { checkServerIdentity, getCACertificates } from "node:tls";
import { Agent, buildConnector } from "undici";

/** An agent for undici. The file is read for each connection: a gateway that is started again shows a renewed one. */
export function agentTrusting(certificateFile: string | undefined, options: Agent.Options = {}): Agent {
  if (certificateFile === undefined) return new Agent(options);
  return new Agent({
    ...options,
    connect: (target, done) => {
      try {
        buildConnector(trustOf(readFileSync(certificateFile, "utf8")))(target, done);
      } catch (error) {
        done(error instanceof Error ? error : new Error("The certificate cannot be read."), null);
      }
    },
  });
}

/** Whether the file can be read and begins with a certificate. */
export function holdsCertificate(file: string): boolean {
  try {
    return new X509Certificate(readFileSync(file)).raw.length > 0;
  } catch {
    return false;
  }
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
