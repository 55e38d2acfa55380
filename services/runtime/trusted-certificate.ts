/**
 * Trusts one certificate besides Node's authorities: the certificate of a gateway that terminates TLS itself. No
 * authority needs to have signed it, and its name may be another one: the server has to show exactly this certificate.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { checkServerIdentity, getCACertificates } from "node:tls";
import { Agent, buildConnector } from "undici";

/**
 * An agent for undici. It reads the file for each connection, because a restarted gateway may show a renewed
 * certificate.
 */
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
    // Without the authority the chain ends at the certificate itself.
    allowPartialTrustChain: true,
    checkServerIdentity: (host, shown) =>
      shown.raw.equals(trusted.raw) ? undefined : checkServerIdentity(host, shown),
  };
}
