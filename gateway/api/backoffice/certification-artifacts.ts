/** Certification artifacts (contract, "What the service does" 5): the owner records, reads, downloads and revokes them. */
import { z } from "zod";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as messages from "../../../services/bus/messages/certification-artifacts.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreBefore, pageBeforeQuery } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, nameSchema, reasonSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { outcomeSchema } from "./conformance-runs.ts";

const SHA256_EXAMPLE = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const sha256Schema = z
  .string()
  .regex(/^[\da-f]{64}$/)
  .meta({ description: "SHA-256 in hexadecimal digits.", examples: [SHA256_EXAMPLE] });
const capabilitySchema = z.enum(messages.CERTIFIED_CAPABILITIES).meta({ id: "CertifiedCapability" });
const personSchema = z.object({ user_id: idSchema, name: z.string() });
const providerSchema = nameSchema.meta({ description: "Who makes the device's software.", examples: ["Acme"] });

const checkSchema = messages.deviceCheckSchema.extend({ outcome: outcomeSchema }).meta({ id: "CheckOfDevice" });
const RUN_EXAMPLE = {
  sandbox_id: 7,
  device_id: 12,
  provider: "Acme",
  software_version: "4.2.0",
  software_sha256: SHA256_EXAMPLE,
  suite_version: "0.2.0",
  suite_sha256: SHA256_EXAMPLE,
  contract_sha256: SHA256_EXAMPLE,
  checks: [{ id: "device.shows_total", outcome: "passed" as const, duration_ms: 2_104 }],
  left_behind: [],
};
const runSchema = z
  .strictObject({
    sandbox_id: idSchema,
    device_id: idSchema.meta({ description: "The device of the sandbox that was checked." }),
    provider: providerSchema,
    model: nameSchema.optional(),
    software_version: nameSchema,
    software_sha256: sha256Schema.optional().meta({ description: "The hash of the software build that was checked." }),
    suite_version: z.string().max(BOUNDS.nameCharacters),
    suite_sha256: sha256Schema,
    contract_sha256: sha256Schema,
    checks: z.array(checkSchema).max(BOUNDS.listed),
    left_behind: z.array(z.string()).max(BOUNDS.listed),
  })
  .meta({ id: "RecordCertification", examples: [RUN_EXAMPLE] });

const artifactShape = {
  artifact_id: idSchema,
  sandbox_id: idSchema,
  device_id: idSchema,
  provider: z.string(),
  capability: capabilitySchema,
  model: z.string().nullable(),
  software_version: z.string(),
  software_sha256: sha256Schema.nullable(),
  suite_version: z.string(),
  contract_sha256: sha256Schema,
  started_at: timestampSchema,
  ended_at: timestampSchema,
  recorded_at: timestampSchema,
  recorded_by: personSchema.meta({ description: "The owner who vouches for the result." }),
  valid_until: timestampSchema,
  leaf_index: z.int().min(0).meta({ description: "Its position in the log, from 0." }),
  revocation: z
    .object({ revoked_at: timestampSchema, revoked_by: personSchema, reason: z.string() })
    .nullable()
    .meta({ description: "Null while the artifact is not revoked." }),
};
const EXAMPLE = {
  artifact_id: 3,
  sandbox_id: 7,
  device_id: 12,
  provider: "Acme",
  capability: "display_total" as const,
  model: null,
  software_version: "4.2.0",
  software_sha256: SHA256_EXAMPLE,
  suite_version: "0.2.0",
  contract_sha256: SHA256_EXAMPLE,
  started_at: "2026-11-24T09:00:00.000Z",
  ended_at: "2026-11-24T09:02:10.000Z",
  recorded_at: "2026-11-24T09:02:11.000Z",
  recorded_by: { user_id: 3, name: "Olga" },
  valid_until: "2027-11-24T09:02:11.000Z",
  leaf_index: 0,
  revocation: null,
};
const artifactSchema = z.object(artifactShape).meta({ id: "CertificationArtifact", examples: [EXAMPLE] });
const artifactWithEvidenceSchema = z
  .object({
    ...artifactShape,
    evidence: z.string().meta({ description: "The recorded run. The signed statement contains its hash." }),
  })
  .meta({ id: "CertificationArtifactWithEvidence" });
const recordedSchema = z.object({ certification_artifacts: z.array(artifactSchema) });
const artifactsSchema = z.object({ certification_artifacts: z.array(artifactSchema), has_more: hasMoreBefore });
const querySchema = z.strictObject({
  ...pageBeforeQuery,
  provider: z
    .string()
    .max(BOUNDS.nameCharacters)
    .optional()
    .meta({ description: "Only artifacts of this provider, by its exact name." }),
  capability: capabilitySchema.optional().meta({ description: "Only artifacts about this capability of a device." }),
});
const provenShape = {
  envelope: z.string().meta({ description: "The signed statement (DSSE of an in-toto statement), byte for byte." }),
  proof: z.string().meta({
    description: "The proof that the log has it: `c2sp.org/tlog-proof@v1`, with a signed checkpoint.",
  }),
};
const certificateSchema = z
  .object({
    ...provenShape,
    revocation: z.object(provenShape).optional().meta({ description: "Only where the artifact was revoked." }),
  })
  .meta({ id: "Certificate" });
const revokeBodySchema = z
  .strictObject({ reason: reasonSchema })
  .meta({ id: "RevokeCertificationArtifact", examples: [{ reason: "A defect of 4.2.0 in the field." }] });

function artifactJson(artifact: messages.CertificationArtifact): z.infer<typeof artifactSchema> {
  const { recordedBy, revocation } = artifact;
  return {
    artifact_id: artifact.artifactId,
    sandbox_id: artifact.sandboxId,
    device_id: artifact.deviceId,
    provider: artifact.provider,
    capability: artifact.capability,
    model: artifact.model,
    software_version: artifact.softwareVersion,
    software_sha256: artifact.softwareSha256,
    suite_version: artifact.suiteVersion,
    contract_sha256: artifact.contractSha256,
    started_at: toTimestamp(artifact.startedAtMs),
    ended_at: toTimestamp(artifact.endedAtMs),
    recorded_at: toTimestamp(artifact.recordedAtMs),
    recorded_by: { user_id: recordedBy.userId, name: recordedBy.name },
    valid_until: toTimestamp(artifact.validUntilMs),
    leaf_index: artifact.leafIndex,
    revocation: revocation && {
      revoked_at: toTimestamp(revocation.revokedAtMs),
      revoked_by: { user_id: revocation.revokedBy.userId, name: revocation.revokedBy.name },
      reason: revocation.reason,
    },
  };
}

const recordCertification: SessionHandler<z.infer<typeof runSchema>> = async ({ caller, deps, body }) => {
  const run = {
    sandboxId: body.sandbox_id,
    deviceId: body.device_id,
    provider: body.provider,
    model: body.model,
    softwareVersion: body.software_version,
    softwareSha256: body.software_sha256,
    suiteVersion: body.suite_version,
    suiteSha256: body.suite_sha256,
    contractSha256: body.contract_sha256,
    checks: body.checks,
    leftBehind: body.left_behind,
  };
  const { artifacts } = await deps.bus.call(messages.recordCertification, { caller, run });
  return created({ certification_artifacts: artifacts.map(artifactJson) });
};

const listCertificationArtifacts: SessionHandler<undefined, z.infer<typeof querySchema>> = async (context) => {
  const { before_id: beforeId, limit, provider, capability } = context.query;
  const request = { caller: context.caller, beforeId, limit, provider, capability };
  const { artifacts, hasMore } = await context.deps.bus.call(messages.listCertificationArtifacts, request);
  return ok({ certification_artifacts: artifacts.map(artifactJson), has_more: hasMore });
};

const getCertificationArtifact: SessionHandler = async ({ caller, deps, id }) => {
  const request = { caller, artifactId: id("artifact_id") };
  const { artifact, evidence } = await deps.bus.call(messages.getCertificationArtifact, request);
  return ok({ ...artifactJson(artifact), evidence });
};

const downloadCertificationArtifact: SessionHandler = async ({ caller, deps, id }) => {
  const request = { caller, artifactId: id("artifact_id") };
  const { certificate, revocation } = await deps.bus.call(messages.downloadCertificationArtifact, request);
  return ok(revocation === null ? certificate : { ...certificate, revocation });
};

const revokeCertificationArtifact: SessionHandler<z.infer<typeof revokeBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, artifactId: context.id("artifact_id"), reason: body.reason };
  const { artifact } = await deps.bus.call(messages.revokeCertificationArtifact, request);
  return ok(artifactJson(artifact));
};

const root = "/api/backoffice/v1/certification-artifacts/";
const one = `${root}{artifact_id}/` as const;
const CONFLICTS = `The \`reason\` of a \`conflict\` is one of ${messages.CERTIFICATION_CONFLICTS.map((word) => `\`${word}\``).join(", ")}.`;

export const certificationArtifactRoutes = [
  backofficeRoute({
    method: "GET",
    path: root,
    operation: "listCertificationArtifacts",
    summary: "List the certification artifacts",
    description: "The list includes revoked and expired artifacts.",
    query: querySchema,
    replies: { 200: { description: "The newest first.", schema: artifactsSchema } },
    handler: listCertificationArtifacts,
  }),
  backofficeRoute({
    method: "POST",
    path: root,
    operation: "recordCertification",
    summary: "Record a passed run",
    description: `Records one artifact for each capability that a run of the suite has checked with the device. Every check of the run must have passed; otherwise the service records nothing. The artifact names the owner, who vouches for the result. The audit log must have the run, and the run must have ended within the last hour. A repetition gets the same answer. \`npm run cli -- certify\` runs the suite and sends this request. ${CONFLICTS}`,
    body: runSchema,
    replies: { 201: { description: "The artifacts of the run.", schema: recordedSchema } },
    errors: ["not_found", "conflict"],
    handler: recordCertification,
  }),
  backofficeRoute({
    method: "GET",
    path: one,
    operation: "getCertificationArtifact",
    summary: "Read a certification artifact",
    description: "An artifact does not change. Only its `revocation` can be added later.",
    replies: { 200: { description: "The artifact and its evidence.", schema: artifactWithEvidenceSchema } },
    errors: ["not_found"],
    handler: getCertificationArtifact,
  }),
  backofficeRoute({
    method: "GET",
    path: `${one}certificate/`,
    operation: "downloadCertificationArtifact",
    summary: "Download a certificate",
    description:
      "The signed statement, and the proof that the log has it. With the log's key, `clients/verify-certificate.mjs` or any program that knows the formats can verify it offline. Pass it on unchanged.",
    replies: { 200: { description: "The certificate.", schema: certificateSchema } },
    errors: ["not_found"],
    handler: downloadCertificationArtifact,
  }),
  backofficeRoute({
    method: "POST",
    path: `${one}revoke/`,
    operation: "revokeCertificationArtifact",
    summary: "Revoke a certification artifact",
    description:
      "Adds a revocation to the log; the artifact itself does not change. For an artifact that is already revoked, the answer is the same, with the first reason.",
    body: revokeBodySchema,
    replies: { 200: { description: "The artifact with its revocation.", schema: artifactSchema } },
    errors: ["not_found", "conflict"],
    handler: revokeCertificationArtifact,
  }),
];
