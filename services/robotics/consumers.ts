/** Robotics consumers: their names, their access and their credentials. */
import { createHash, randomBytes } from "node:crypto";
import { OPERATOR, personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as messages from "../bus/messages/consumers.ts";
import type { Handler } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { createOnce } from "../db/creations.ts";
import type { Transaction } from "../db/pool.ts";
import { type RoboticsAction, recordRoboticsAction } from "../db/robotics-audit-log.ts";
import type { RoboticsDeps } from "./deps.ts";
import { ROBOTICS_LIMITS } from "./limits.ts";
import * as sql from "./sql/consumers.ts";
import { lockFilial } from "./sql/filial-robotics.ts";

type Deps = Pick<RoboticsDeps, "database">;

/** The name of the sandbox's consumer. After the owner has renamed it, the next start makes another one. */
const SANDBOX_NAME = "Sandbox robots";

/** Lists by id. Another organization's filial has no consumers. Refuses with `permission_denied`. */
export const listRoboticsConsumers: Handler<Deps, typeof messages.listRoboticsConsumers> = async (deps, request) => {
  const { database } = deps;
  const { caller, filialId, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const rows = await sql.listRoboticsConsumers(database, { organizationId, filialId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(consumerOf), limit);
  return { consumers: page, hasMore };
};

/**
 * Refuses with `permission_denied`, `not_found` (the filial), `conflict` (the filial is full), or `already_created`: the
 * credential is shown once.
 */
export const createRoboticsConsumer: Handler<Deps, typeof messages.createRoboticsConsumer> = async (deps, request) => {
  const { database } = deps;
  const { caller, filialId, name, mode, creation } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const { credential, hash } = newCredential();
  const create = async (transaction: Transaction): Promise<sql.ConsumerRow> => {
    // Under the lock no other transaction adds a consumer, so that the count is right.
    existing(await lockFilial(transaction, { organizationId, filialId }), "filial_id");
    if ((await sql.countConsumers(transaction, filialId)) >= ROBOTICS_LIMITS.consumersPerFilial) {
      const detail = `A filial has at most ${ROBOTICS_LIMITS.consumersPerFilial} robotics consumers.`;
      throw new RefusedError({ code: "conflict", detail });
    }
    const wanted = { organizationId, filialId, name, mode, credentialHash: hash };
    const row = await sql.createRoboticsConsumer(transaction, wanted);
    await recordRoboticsAction(transaction, {
      organizationId,
      actor: personActor(caller),
      action: "robotics_consumer_created",
      subject: { kind: "robotics_consumer", id: row.consumer_id },
      data: { filial_id: filialId, name, mode },
    });
    return row;
  };
  const consumer = await createOnce(database, creation, { create, idOf: (row) => row.consumer_id });
  return { consumer: consumerOf(consumer), credential };
};

/**
 * Changes the name or the status. The consumer's open tasks stay; the owner can cancel them. A change to the current
 * values changes nothing. Refuses with `permission_denied` or `not_found`.
 */
export const changeRoboticsConsumer: Handler<Deps, typeof messages.changeRoboticsConsumer> = async (deps, request) => {
  const { database } = deps;
  const { caller, consumerId, name, status } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const consumer = await database.begin(async (transaction) => {
    // Waits for an acceptance of the consumer that is under way; its later requests see the change.
    const row = existing(await sql.lockConsumer(transaction, { organizationId, consumerId }));
    const next = { name: name ?? row.name, status: status ?? row.status };
    const changed = {
      ...(next.name === row.name ? {} : { name: next.name }),
      ...(next.status === row.status ? {} : { status: next.status }),
    };
    if (Object.keys(changed).length === 0) return row;
    await recordRoboticsAction(transaction, {
      organizationId,
      actor: personActor(caller),
      action: "robotics_consumer_changed",
      subject: { kind: "robotics_consumer", id: consumerId },
      data: changed,
    });
    return await sql.changeRoboticsConsumer(transaction, consumerId, next);
  });
  return { consumer: consumerOf(consumer) };
};

/** Replaces the credential; the old one is no longer valid. Refuses with `permission_denied` or `not_found`. */
export const resetRoboticsCredential: Handler<Deps, typeof messages.resetRoboticsCredential> = async (
  { database },
  { caller, consumerId },
) => {
  const { organizationId } = requirePermission(caller, "organization.manage");
  const { credential, hash } = newCredential();
  const consumer = await database.begin(async (transaction) => {
    const row = existing(await sql.lockConsumer(transaction, { organizationId, consumerId }));
    await sql.resetRoboticsCredential(transaction, consumerId, hash);
    await recordRoboticsAction(transaction, {
      organizationId,
      actor: personActor(caller),
      action: "robotics_credential_reset",
      subject: { kind: "robotics_consumer", id: consumerId },
    });
    return row;
  });
  return { consumer: consumerOf(consumer), credential };
};

/** Reads PostgreSQL on every request, so that a reset or a suspension takes effect with its commit. */
export const authenticateConsumer: Handler<
  Pick<RoboticsDeps, "database" | "metrics">,
  typeof messages.authenticateConsumer
> = async ({ database, metrics }, { credentialHash }) => {
  const row = await sql.authenticateConsumer(database, Buffer.from(credentialHash, "hex"));
  const isKnown = row?.status === "active";
  metrics.credentialChecks.add({ result: isKnown ? "known" : "unknown" });
  // Only the holder of the credential learns of the suspension, so it does not reveal which consumers exist.
  if (!isKnown) return { consumer: null, suspended: row !== undefined };
  const { consumer_id: consumerId, organization_id: organizationId, filial_id: filialId, name, mode } = row;
  return { consumer: { consumerId, name, organizationId, filialId, mode } };
};

/**
 * Creates the sandbox's consumer, or sets its credential; a second run changes nothing. Refuses with `not_found` (the
 * filial).
 */
export const seedSandboxConsumer: Handler<Deps, typeof messages.seedSandboxConsumer> = async (deps, request) => {
  const { database } = deps;
  const { organizationId, filialId } = request;
  const credentialHash = Buffer.from(request.credentialHash, "hex");
  const record = async (transaction: Transaction, action: string, id: number): Promise<void> => {
    const subject: RoboticsAction["subject"] = { kind: "robotics_consumer", id };
    await recordRoboticsAction(transaction, {
      organizationId,
      actor: OPERATOR,
      action,
      subject,
      data: { seeded: true },
    });
  };
  const consumerId = await database.begin(async (transaction) => {
    existing(await lockFilial(transaction, { organizationId, filialId }));
    const known = await sql.findTestConsumer(transaction, { filialId, name: SANDBOX_NAME });
    if (known === undefined) {
      const wanted = { organizationId, filialId, name: SANDBOX_NAME, mode: "test", credentialHash } as const;
      const { consumer_id: id } = await sql.createRoboticsConsumer(transaction, wanted);
      await record(transaction, "robotics_consumer_created", id);
      return id;
    }
    const { consumer_id: id } = known;
    const isNew = await sql.resetRoboticsCredential(transaction, id, credentialHash);
    if (isNew) await record(transaction, "robotics_credential_reset", id);
    return id;
  });
  return { consumerId };
};

/** `rc_` and 256 random bits. The credential is shown once; only its SHA-256 is stored (I9). */
function newCredential(): { readonly credential: string; readonly hash: Buffer } {
  const credential = `rc_${randomBytes(ROBOTICS_LIMITS.credentialBytes).toString("base64url")}`;
  return { credential, hash: createHash("sha256").update(credential).digest() };
}

function consumerOf(row: sql.ConsumerRow): messages.Consumer {
  return {
    consumerId: row.consumer_id,
    filialId: row.filial_id,
    name: row.name,
    mode: row.mode,
    status: row.status,
    createdAtMs: row.created_at.getTime(),
  };
}
