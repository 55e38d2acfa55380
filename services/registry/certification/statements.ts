/** The signed in-toto statements: of a passed run (`test-result/v0.1`) and of a revocation. */
import { createHash } from "node:crypto";
import type { DeviceKind } from "../../../machines/station/state.ts";
import type { CertificationRequest, CertifiedCapability } from "../../bus/messages/certification-artifacts.ts";

const STATEMENT = "https://in-toto.io/Statement/v1";
const TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1";
/** No standard predicate means a revocation, so this is the product's URI, as in-toto requires. */
const REVOCATION = "urn:device-payments:certificate-revocation:v1";

export const sha256 = (text: string | Uint8Array): string => createHash("sha256").update(text).digest("hex");

interface PassedRun {
  readonly run: CertificationRequest;
  readonly capability: CertifiedCapability;
  readonly kind: DeviceKind;
  /** All capabilities that the run has exercised; each has a statement. */
  readonly capabilities: readonly CertifiedCapability[];
  /** The checks of the capability, and those of enrollment and presence, which each device needs. */
  readonly passedTests: readonly string[];
  readonly organization: { readonly id: number; readonly name: string };
  readonly vouchedBy: { readonly userId: number; readonly name: string };
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly validUntil: Date;
  readonly evidence: string;
  /** SHA-256 of the OpenAPI document of the service that the device acted with. */
  readonly openApiSha256: string;
}

/**
 * The subject is the build if the request names its hash. Otherwise it is the name with the version, which proves less.
 */
export function passStatement(passed: PassedRun): string {
  const { run, capability, kind, organization, vouchedBy, evidence } = passed;
  const options = { deviceKind: kind, capabilities: passed.capabilities };
  const name = [run.provider, run.model, run.softwareVersion].filter((part) => part !== undefined).join(" ");
  return JSON.stringify({
    _type: STATEMENT,
    subject: [{ name, digest: { sha256: run.softwareSha256 ?? sha256(name) } }],
    predicateType: TEST_RESULT,
    predicate: {
      result: "PASSED",
      configuration: [
        { name: `conformance suite ${run.suiteVersion}`, digest: { sha256: run.suiteSha256 } },
        { name: "contract", digest: { sha256: run.contractSha256 } },
        { name: "openapi.json", digest: { sha256: passed.openApiSha256 } },
        { name: "options", digest: { sha256: sha256(JSON.stringify(options)) }, annotations: options },
      ],
      passedTests: passed.passedTests,
      warnedTests: [],
      failedTests: [],
      provider: run.provider,
      capability,
      device: {
        id: run.deviceId,
        kind,
        model: run.model ?? null,
        softwareVersion: run.softwareVersion,
        // Whether the subject's digest is of the build or of its name.
        digestOf: run.softwareSha256 === undefined ? "name" : "build",
      },
      suiteVersion: run.suiteVersion,
      organization,
      environment: "sandbox",
      // The suite does not run in the service. The service has seen the device during the run; the owner vouches for
      // the results.
      vouchedBy: { role: "owner", ...vouchedBy },
      startedAt: passed.startedAt.toISOString(),
      endedAt: passed.endedAt.toISOString(),
      validUntil: passed.validUntil.toISOString(),
      evidence: { sha256: sha256(evidence), size: Buffer.byteLength(evidence) },
    },
  });
}

/** It names the revoked envelope by its hash. */
export function revocationStatement(revoked: {
  readonly envelope: string;
  readonly leafIndex: number;
  readonly reason: string;
  readonly revokedAt: Date;
}): string {
  const { envelope, leafIndex, reason, revokedAt } = revoked;
  return JSON.stringify({
    _type: STATEMENT,
    subject: [{ name: `certificate ${leafIndex}`, digest: { sha256: sha256(envelope) } }],
    predicateType: REVOCATION,
    predicate: { leafIndex, reason, revokedAt: revokedAt.toISOString() },
  });
}
