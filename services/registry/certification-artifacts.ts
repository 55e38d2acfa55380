/**
 * Certification artifacts. The suite runs where the device and the owner are, and not in this service. So an artifact
 * relies on two proofs. First, the owner records the run in a session and vouches for the result of each check; the
 * artifact names the owner. Second, the audit log has the steps that only the suite takes with a device, between two
 * resets of its sandbox. A device maker has neither proof.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DeviceKind } from "../../machines/station/state.ts";
import { type Caller, requirePermission } from "../bus/messages/caller.ts";
import * as messages from "../bus/messages/certification-artifacts.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import type { Transaction } from "../db/pool.ts";
import type { SigningKey } from "../runtime/signing-key.ts";
import { VERSION } from "../runtime/version.ts";
import { appendStatements, provenStatements } from "./certification/log.ts";
import { REQUIRED_CHECKS } from "./certification/required-checks.ts";
import { passStatement, revocationStatement, sha256 } from "./certification/statements.ts";
import type { RegistryDeps, RegistryHandler } from "./deps.ts";
import { ownerEvent } from "./events.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import * as sql from "./sql/certification-artifacts.ts";
import { findEnvelope, listLeafHashes, lockCertificationLog } from "./sql/certification-log.ts";
import { recordEvent } from "./sql/events.ts";
import { getOrganization } from "./sql/organizations.ts";
import { lockSandbox } from "./sql/sandboxes.ts";

const { certification: LIMITS } = REGISTRY_LIMITS;
/** The contract that the suite of this version checks. */
const CONTRACT_FILE = join(import.meta.dirname, "..", "..", "docs", "contract.md");
/** The API that this version serves to devices. `/openapi.json` answers the bytes of this file. */
const OPENAPI_FILE = join(import.meta.dirname, "..", "..", "gateway", "http", "documents", "openapi.json");
/** Every device needs these. They are certified with each capability, and not alone. */
const COMMON = ["enrollment", "presence"] as const;

export const recordCertification: RegistryHandler<typeof messages.recordCertification> = async (deps, request) => {
  const { caller, run } = request;
  requirePermission(caller, "organization.manage");
  const key = requireKey(deps);
  requireSuite(run);
  const rows = await deps.sql.begin(async (tx) => {
    const sandbox = existing(await lockSandbox(tx, caller.organizationId, run.sandboxId), "sandbox_id");
    const kind = kindOf(run.deviceId, sandbox);
    const capabilities = passedCapabilities(run, kind);
    const seen = await requireSeen(tx, { caller, stationId: sandbox.station_id, deviceId: run.deviceId });
    const earlier = await sql.listArtifactsOfRun(tx, seen.event_id);
    const evidence = evidenceOf(run);
    if (earlier.length > 0) {
      if (earlier.every((row) => row.evidence === evidence)) return earlier;
      const detail = "The newest run with this device is recorded already, with another result; run the suite again.";
      throw conflict("run_recorded", detail);
    }
    requireRecent(seen);
    await lockCertificationLog(tx);
    await requireRoom(tx, caller.organizationId, capabilities.length);
    await record(tx, key, { caller, run, kind, capabilities, seen, evidence });
    return await sql.listArtifactsOfRun(tx, seen.event_id);
  });
  return { artifacts: rows.map(artifactMessage) };
};

function requireKey({ certificationKey }: Pick<RegistryDeps, "certificationKey">): SigningKey {
  if (certificationKey !== undefined) return certificationKey;
  const detail =
    "This installation has no key for certification artifacts: its operator sets CERTIFICATION_SIGNING_KEY.";
  throw conflict("no_signing_key", detail);
}

function requireSuite({ suiteVersion, contractSha256 }: messages.CertificationRequest): void {
  if (suiteVersion !== VERSION) {
    const detail = `The suite has the version ${suiteVersion}, and this service ${VERSION}: run the suite of this version.`;
    throw conflict("suite_differs", detail);
  }
  if (contractSha256 === sha256(readFileSync(CONTRACT_FILE))) return;
  throw conflict(
    "suite_differs",
    "The suite checks another contract than this service keeps: run the suite of this version.",
  );
}

function kindOf(deviceId: number, sandbox: { readonly display_id: number; readonly companion_id: number }): DeviceKind {
  if (deviceId === sandbox.companion_id) return "smart_pos_companion";
  if (deviceId === sandbox.display_id) return "customer_display";
  return existing<DeviceKind>(undefined, "device_id");
}

/**
 * The capabilities that the run has exercised. The run must have each of their checks once, and the checks that every
 * device needs, and all must have passed. Otherwise nothing of the run is certified.
 */
function passedCapabilities(
  { checks, leftBehind }: messages.CertificationRequest,
  kind: DeviceKind,
): readonly messages.CertifiedCapability[] {
  const notPassed = checks.find(({ outcome }) => outcome !== "passed");
  if (notPassed !== undefined) throw conflict("run_not_passed", `The check ${notPassed.id} did not pass.`);
  if (leftBehind.length > 0) throw conflict("run_not_passed", "The run left something behind.");
  const required = REQUIRED_CHECKS[kind];
  const checkIds = checks.map(({ id }) => id);
  const exercised = messages.CERTIFIED_CAPABILITIES.filter((capability) =>
    required[capability]?.some((id) => checkIds.includes(id)),
  );
  const wanted = [...COMMON, ...exercised].flatMap((capability) => required[capability] ?? []);
  const missing = wanted.find((id) => !checkIds.includes(id));
  if (missing !== undefined) throw conflict("run_incomplete", `The run lacks the check ${missing}.`);
  const surplus = checkIds.find((id, nth) => !wanted.includes(id) || checkIds.indexOf(id) !== nth);
  if (surplus !== undefined) throw conflict("run_incomplete", `The check ${surplus} is unknown, or is there twice.`);
  if (exercised.length === 0)
    throw conflict("run_incomplete", "The run exercises no capability of this kind of device.");
  return exercised;
}

/** Requires the steps of the suite in the audit log. Throws `conflict`. */
async function requireSeen(
  tx: Transaction,
  { caller, stationId, deviceId }: { readonly caller: Caller; readonly stationId: number; readonly deviceId: number },
): Promise<sql.SeenRun> {
  const seen = await sql.findRun(tx, { organizationId: caller.organizationId, stationId, deviceId });
  if (seen !== undefined) return seen;
  const detail =
    "The audit log has no run of the suite with this device between two resets of the sandbox; run the suite.";
  throw conflict("run_not_seen", detail);
}

function requireRecent(seen: sql.SeenRun): void {
  if (seen.age_ms <= LIMITS.recordWithinMs) return;
  const detail = `The run ended more than ${LIMITS.recordWithinMs / 60_000} minutes ago; run the suite again.`;
  throw conflict("run_too_old", detail);
}

async function requireRoom(tx: Transaction, organizationId: number, more: number): Promise<void> {
  const count = await sql.countArtifacts(tx, organizationId);
  const leaves = await listLeafHashes(tx);
  if (count + more <= LIMITS.artifacts && leaves.length + more <= LIMITS.leaves) return;
  const detail = `An organization has at most ${LIMITS.artifacts} artifacts, and an installation ${LIMITS.leaves}.`;
  throw conflict("too_many_artifacts", detail);
}

/** The evidence is the whole request. A form without what the artifact has already is not worth the code. */
const evidenceOf = (run: messages.CertificationRequest): string => JSON.stringify(run);

interface Recorded {
  readonly caller: Caller;
  readonly run: messages.CertificationRequest;
  readonly kind: DeviceKind;
  readonly capabilities: readonly messages.CertifiedCapability[];
  readonly seen: sql.SeenRun;
  readonly evidence: string;
}

async function record(tx: Transaction, key: SigningKey, recorded: Recorded): Promise<void> {
  const { caller, run, kind, capabilities, seen, evidence } = recorded;
  const { organizationId, userId, name } = caller;
  const organization = existing(await getOrganization(tx, organizationId));
  const [{ now }] = await tx<[{ now: Date }]>`select now() as now`;
  const validUntil = new Date(now.getTime() + LIMITS.validMs);
  const openApiSha256 = sha256(readFileSync(OPENAPI_FILE));
  const statements = capabilities.map((capability) =>
    passStatement({
      run,
      capability,
      kind,
      capabilities,
      openApiSha256,
      passedTests: [...COMMON, capability].flatMap((each) => REQUIRED_CHECKS[kind][each] ?? []),
      organization: { id: organizationId, name: organization.name },
      vouchedBy: { userId, name },
      startedAt: seen.started_at,
      endedAt: seen.ended_at,
      validUntil,
      evidence,
    }),
  );
  const indexes = await appendStatements(tx, key, statements);
  for (const [nth, capability] of capabilities.entries()) {
    await sql.insertArtifact(tx, {
      ...run,
      organizationId,
      leafIndex: indexes[nth] as number,
      run: seen,
      provider: run.provider,
      capability,
      model: run.model,
      softwareSha256: run.softwareSha256,
      recordedBy: { userId, name },
      validUntil,
      evidence,
    });
  }
  const data = { provider: run.provider, software_version: run.softwareVersion, capabilities: [...capabilities] };
  const subject = { kind: "device", id: run.deviceId } as const;
  await recordEvent(tx, ownerEvent(caller, "device_certified", subject, data));
}

export const listCertificationArtifacts: RegistryHandler<typeof messages.listCertificationArtifacts> = async (
  deps,
  request,
) => {
  const { caller, provider, capability, beforeId, limit } = request;
  requirePermission(caller, "organization.manage");
  const page = { organizationId: caller.organizationId, provider, capability, beforeId, limit: limit + 1 };
  const rows = await sql.listCertificationArtifacts(deps.sql, page);
  const { page: artifacts, hasMore } = firstPage(rows.map(artifactMessage), limit);
  return { artifacts, hasMore };
};

export const getCertificationArtifact: RegistryHandler<typeof messages.getCertificationArtifact> = async (
  deps,
  { caller, artifactId },
) => {
  requirePermission(caller, "organization.manage");
  const row = existing(await sql.getCertificationArtifact(deps.sql, caller.organizationId, artifactId));
  return { artifact: artifactMessage(row), evidence: row.evidence };
};

export const downloadCertificationArtifact: RegistryHandler<typeof messages.downloadCertificationArtifact> = async (
  deps,
  { caller, artifactId },
) => {
  requirePermission(caller, "organization.manage");
  const row = existing(await sql.getCertificationArtifact(deps.sql, caller.organizationId, artifactId));
  const { leaf_index: index, revocation_index: revokedAt } = row;
  const [certificate, revocation] = await provenStatements(deps.sql, revokedAt === null ? [index] : [index, revokedAt]);
  return { certificate: existing(certificate), revocation: revocation ?? null };
};

export const revokeCertificationArtifact: RegistryHandler<typeof messages.revokeCertificationArtifact> = async (
  deps,
  { caller, artifactId, reason },
) => {
  requirePermission(caller, "organization.manage");
  const key = requireKey(deps);
  const { organizationId, userId, name } = caller;
  const row = await deps.sql.begin(async (tx) => {
    await lockCertificationLog(tx);
    const artifact = existing(await sql.getCertificationArtifact(tx, organizationId, artifactId));
    if (artifact.revoked_at !== null) return artifact;
    const { leaf_index: leafIndex, device_id: deviceId } = artifact;
    const envelope = existing(await findEnvelope(tx, leafIndex));
    const [{ now }] = await tx<[{ now: Date }]>`select now() as now`;
    const statement = revocationStatement({ envelope, leafIndex, reason, revokedAt: now });
    const [revocationIndex] = await appendStatements(tx, key, [statement]);
    const revokedBy = { userId, name };
    await sql.revokeCertificationArtifact(tx, { artifactId, leafIndex: revocationIndex as number, revokedBy, reason });
    const data = { artifact_id: artifactId, capability: artifact.capability, reason };
    await recordEvent(tx, ownerEvent(caller, "certification_revoked", { kind: "device", id: deviceId }, data));
    return existing(await sql.getCertificationArtifact(tx, organizationId, artifactId));
  });
  return { artifact: artifactMessage(row) };
};

const conflict = (reason: (typeof messages.CERTIFICATION_CONFLICTS)[number], detail: string): RefusedError =>
  new RefusedError({ code: "conflict", reason, detail });

function artifactMessage(row: sql.CertificationArtifactRow): messages.CertificationArtifact {
  return {
    artifactId: row.artifact_id,
    sandboxId: row.sandbox_id,
    deviceId: row.device_id,
    provider: row.provider,
    capability: row.capability,
    model: row.model,
    softwareVersion: row.software_version,
    softwareSha256: row.software_sha256,
    suiteVersion: row.suite_version,
    contractSha256: row.contract_sha256,
    startedAtMs: row.started_at.getTime(),
    endedAtMs: row.ended_at.getTime(),
    recordedAtMs: row.recorded_at.getTime(),
    recordedBy: { userId: row.recorded_by, name: row.recorded_by_name },
    validUntilMs: row.valid_until.getTime(),
    leafIndex: row.leaf_index,
    revocation:
      row.revoked_at === null
        ? null
        : {
            revokedAtMs: row.revoked_at.getTime(),
            revokedBy: { userId: row.revoked_by as number, name: row.revoked_by_name as string },
            reason: row.revoked_because as string,
          },
  };
}
