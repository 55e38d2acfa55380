/**
 * Certification artifacts (contract, "What the service does" 5): each certifies that a device has passed the checks of
 * one capability. Operations on an organization's artifacts need `organization.manage`; another organization's id is
 * `not_found`. The log of all artifacts is public: it has only hashes and signatures.
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { repeatable } from "../operation.ts";
import { pageBefore } from "../page.ts";
import { callerSchema as caller } from "./caller.ts";
import { nameSchema } from "./name.ts";
import { reasonSchema } from "./sentence.ts";

const id = z.int().positive();
const sha256 = z.string().regex(/^[\da-f]{64}$/);

/** The capabilities of devices, as an owner declares them. Each has a separate certification. */
export const CERTIFIED_CAPABILITIES = [
  "handoff_present",
  "outcome_report",
  "display_total",
  "qr_dynamic_present",
] as const;
export type CertifiedCapability = (typeof CERTIFIED_CAPABILITIES)[number];

/** Why a run or a revocation is refused with `conflict`. */
export const CERTIFICATION_CONFLICTS = [
  /** A check did not pass, or the run left something behind. */
  "run_not_passed",
  /** A check is missing, is not part of this suite, or is there twice. */
  "run_incomplete",
  /** The suite has another version than this service, or checks another contract. */
  "suite_differs",
  /** The audit log has no such run: the actions of the suite on a device are not there. */
  "run_not_seen",
  /** The run ended too long ago. */
  "run_too_old",
  /** The same run was recorded with another result. */
  "run_recorded",
  /** The installation has no key to sign with. */
  "no_signing_key",
  /** The organization, or the installation, has the most artifacts that it may have. */
  "too_many_artifacts",
] as const;

/** The result of one check in a run with a device. */
export const deviceCheckSchema = z.object({
  id: z.string().max(BOUNDS.nameCharacters),
  outcome: z.enum(["passed", "failed", "not_run"]),
  duration_ms: z.int().min(0),
});

const certificationRequestSchema = z.object({
  sandboxId: id,
  deviceId: id,
  /** Who makes the device's software. */
  provider: nameSchema,
  model: nameSchema.optional(),
  softwareVersion: nameSchema,
  /** The hash of the build. */
  softwareSha256: sha256.optional(),
  suiteVersion: z.string().max(BOUNDS.nameCharacters),
  suiteSha256: sha256,
  contractSha256: sha256,
  checks: z.array(deviceCheckSchema).max(BOUNDS.listed),
  leftBehind: z.array(z.string()).max(BOUNDS.listed),
});
export type CertificationRequest = z.infer<typeof certificationRequestSchema>;

const certificationArtifactSchema = z.object({
  artifactId: id,
  sandboxId: id,
  deviceId: id,
  provider: z.string(),
  capability: z.enum(CERTIFIED_CAPABILITIES),
  model: z.string().nullable(),
  softwareVersion: z.string(),
  softwareSha256: sha256.nullable(),
  suiteVersion: z.string(),
  contractSha256: sha256,
  startedAtMs: z.number(),
  endedAtMs: z.number(),
  recordedAtMs: z.number(),
  recordedBy: z.object({ userId: id, name: z.string() }),
  validUntilMs: z.number(),
  /** Its position in the log. */
  leafIndex: z.int().min(0),
  revocation: z
    .object({ revokedAtMs: z.number(), revokedBy: z.object({ userId: id, name: z.string() }), reason: z.string() })
    .nullable(),
});
export type CertificationArtifact = z.infer<typeof certificationArtifactSchema>;

/** A signed statement, and the proof that the log contains it. A verifier needs only the log's key besides. */
const provenStatementSchema = z.object({ envelope: z.string(), proof: z.string() });

/**
 * Refuses with `conflict` and a reason of `CERTIFICATION_CONFLICTS`. A repetition for a recorded run gets the same
 * answer.
 */
export const recordCertification = repeatable(
  "registry.recordCertification",
  z.object({ caller, run: certificationRequestSchema }),
  z.object({ artifacts: z.array(certificationArtifactSchema) }),
);
export const listCertificationArtifacts = repeatable(
  "registry.listCertificationArtifacts",
  z.object({
    caller,
    provider: z.string().optional(),
    capability: z.enum(CERTIFIED_CAPABILITIES).optional(),
    ...pageBefore,
  }),
  z.object({ artifacts: z.array(certificationArtifactSchema), hasMore: z.boolean() }),
);
export const getCertificationArtifact = repeatable(
  "registry.getCertificationArtifact",
  z.object({ caller, artifactId: id }),
  z.object({ artifact: certificationArtifactSchema, evidence: z.string() }),
);
/** With the newest checkpoint of the log. `revocation` is not null when the artifact was revoked. */
export const downloadCertificationArtifact = repeatable(
  "registry.downloadCertificationArtifact",
  z.object({ caller, artifactId: id }),
  z.object({ certificate: provenStatementSchema, revocation: provenStatementSchema.nullable() }),
);
/** A repetition gets the same answer: the first reason stays. */
export const revokeCertificationArtifact = repeatable(
  "registry.revokeCertificationArtifact",
  z.object({ caller, artifactId: id, reason: reasonSchema }),
  z.object({ artifact: certificationArtifactSchema }),
);

/** The log of this installation. It needs no caller. */
export const getCertificationLog = repeatable(
  "registry.getCertificationLog",
  z.object({}),
  z.object({
    name: z.string(),
    size: z.int().min(0),
    /** Null while the log is empty. */
    checkpoint: z.string().nullable(),
    /** Oldest first. */
    keys: z.array(z.object({ keyId: z.string(), verifierKey: z.string(), firstUsedAtMs: z.number() })),
  }),
);
/**
 * The proof that the log of the larger size begins with the log of the smaller size. Refuses with `invalid_request` for
 * a size that the log never had.
 */
export const getCertificationConsistency = repeatable(
  "registry.getCertificationConsistency",
  z.object({ fromSize: z.int().min(1), toSize: z.int().min(1) }),
  z.object({ from: z.string(), to: z.string(), hashes: z.array(z.string()) }),
);
