import type { CertifiedCapability } from "../../bus/messages/certification-artifacts.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";

export interface CertificationArtifactRow {
  readonly artifact_id: number;
  readonly leaf_index: number;
  readonly sandbox_id: number;
  readonly device_id: number;
  readonly provider: string;
  readonly capability: CertifiedCapability;
  readonly model: string | null;
  readonly software_version: string;
  readonly software_sha256: string | null;
  readonly suite_version: string;
  readonly contract_sha256: string;
  readonly started_at: Date;
  readonly ended_at: Date;
  readonly recorded_at: Date;
  readonly recorded_by: number;
  readonly recorded_by_name: string;
  readonly valid_until: Date;
  readonly evidence: string;
  readonly revoked_at: Date | null;
  readonly revoked_by: number | null;
  readonly revoked_by_name: string | null;
  readonly revoked_because: string | null;
  readonly revocation_index: number | null;
}

const artifacts = (sql: Queryable) => sql`
  select a.artifact_id, a.leaf_index, a.sandbox_id, a.device_id, a.provider, a.capability, a.model, a.software_version,
    encode(a.software_sha256, 'hex') as software_sha256, a.suite_version, a.contract_sha256, a.started_at, a.ended_at,
    a.recorded_at, a.recorded_by, a.recorded_by_name, a.valid_until, a.evidence, r.revoked_at, r.revoked_by,
    r.revoked_by_name, r.reason as revoked_because, r.leaf_index as revocation_index
  from certification_artifacts a left join certification_revocations r using (artifact_id)`;

interface NewArtifact {
  readonly organizationId: number;
  readonly leafIndex: number;
  readonly run: SeenRun;
  readonly sandboxId: number;
  readonly deviceId: number;
  readonly provider: string;
  readonly capability: CertifiedCapability;
  readonly model: string | undefined;
  readonly softwareVersion: string;
  readonly softwareSha256: string | undefined;
  readonly suiteVersion: string;
  readonly contractSha256: string;
  readonly recordedBy: { readonly userId: number; readonly name: string };
  readonly validUntil: Date;
  readonly evidence: string;
}

export async function insertArtifact(sql: Transaction, artifact: NewArtifact): Promise<void> {
  const { organizationId, leafIndex, run, sandboxId, deviceId, provider, capability, recordedBy } = artifact;
  const { model = null, softwareVersion, softwareSha256 = null, suiteVersion, contractSha256 } = artifact;
  await sql`
    insert into certification_artifacts (organization_id, leaf_index, run_event_id, sandbox_id, device_id, provider,
      capability, model, software_version, software_sha256, suite_version, contract_sha256, started_at, ended_at,
      recorded_by, recorded_by_name, valid_until, evidence)
    values (${organizationId}, ${leafIndex}, ${run.event_id}, ${sandboxId}, ${deviceId}, ${provider}, ${capability},
      ${model}, ${softwareVersion}, decode(${softwareSha256}, 'hex'), ${suiteVersion}, ${contractSha256},
      ${run.started_at}, ${run.ended_at}, ${recordedBy.userId}, ${recordedBy.name}, ${artifact.validUntil},
      ${artifact.evidence})`;
}

export async function listArtifactsOfRun(sql: Queryable, runEventId: number): Promise<CertificationArtifactRow[]> {
  return sql<CertificationArtifactRow[]>`${artifacts(sql)} where a.run_event_id = ${runEventId} order by a.artifact_id`;
}

export async function countArtifacts(sql: Queryable, organizationId: number): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*) as count from certification_artifacts where organization_id = ${organizationId}`;
  return row.count;
}

/** Up to `limit` artifacts of the organization before one of them, the newest first. */
export async function listCertificationArtifacts(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly provider: string | undefined;
    readonly capability: CertifiedCapability | undefined;
    readonly beforeId: number | undefined;
    readonly limit: number;
  },
): Promise<CertificationArtifactRow[]> {
  const { organizationId, provider = null, capability = null, beforeId = null, limit } = page;
  return sql<CertificationArtifactRow[]>`
    ${artifacts(sql)} where a.organization_id = ${organizationId}
      and (${provider}::text is null or a.provider = ${provider})
      and (${capability}::text is null or a.capability = ${capability})
      and (${beforeId}::bigint is null or a.artifact_id < ${beforeId})
    order by a.artifact_id desc limit ${limit}`;
}

export async function getCertificationArtifact(
  sql: Queryable,
  organizationId: number,
  artifactId: number,
): Promise<CertificationArtifactRow | undefined> {
  const [row] = await sql<CertificationArtifactRow[]>`
    ${artifacts(sql)} where a.organization_id = ${organizationId} and a.artifact_id = ${artifactId}`;
  return row;
}

export async function revokeCertificationArtifact(
  sql: Transaction,
  revocation: {
    readonly artifactId: number;
    readonly leafIndex: number;
    readonly revokedBy: { readonly userId: number; readonly name: string };
    readonly reason: string;
  },
): Promise<void> {
  const { artifactId, leafIndex, revokedBy, reason } = revocation;
  await sql`
    insert into certification_revocations (artifact_id, leaf_index, revoked_by, revoked_by_name, reason)
    values (${artifactId}, ${leafIndex}, ${revokedBy.userId}, ${revokedBy.name}, ${reason})`;
}

/** A run with a device, as the audit log has it. */
export interface SeenRun {
  /** The event of the reset that ended the run. */
  readonly event_id: number;
  readonly started_at: Date;
  readonly ended_at: Date;
  /** Milliseconds since the end of the run. */
  readonly age_ms: number;
}

/**
 * The newest run with the device: between two successive resets of the sandbox the device has enrolled twice, and was suspended
 * and resumed, as the suite does it. What came after the run does not count: the device enrolls again with the code of the reset
 * that ended it. All times are from the database, so that no other clock counts.
 */
export async function findRun(
  sql: Queryable,
  run: { readonly organizationId: number; readonly stationId: number; readonly deviceId: number },
): Promise<SeenRun | undefined> {
  const { organizationId, stationId, deviceId } = run;
  const [row] = await sql<SeenRun[]>`
    with resets as (
      select event_id, at, lag(event_id) over by_id as began_id, lag(at) over by_id as began_at
      from registry_events where organization_id = ${organizationId} and subject_kind = 'station'
        and subject_id = ${stationId} and action = 'sandbox_reset'
      window by_id as (order by event_id))
    select r.event_id, r.began_at as started_at, r.at as ended_at,
      extract(epoch from now() - r.at)::float8 * 1000 as age_ms
    from resets r cross join lateral (
      select count(*) filter (where action = 'device_enrolled') as enrollments,
        count(*) filter (where action = 'device_suspended') as suspensions,
        count(*) filter (where action = 'device_resumed') as resumptions
      from registry_events where organization_id = ${organizationId} and subject_kind = 'device'
        and subject_id = ${deviceId} and event_id between r.began_id and r.event_id) seen
    where seen.enrollments >= 2 and seen.suspensions >= 1 and seen.resumptions >= 1
    order by r.event_id desc limit 1`;
  return row;
}
