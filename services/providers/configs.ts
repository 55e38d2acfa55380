/**
 * Provider configs: which provider serves a filial's stations. Lists, creates, changes and seeds them, and rotates their
 * secrets. A reply names the stored secrets and never shows them.
 */
import { isDeepStrictEqual } from "node:util";
import type { FieldError } from "../bus/field-errors.ts";
import { type Caller, OPERATOR, personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/provider-configs.ts";
import type { Handler, ReplyOf, RequestOf } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import type { Json, Queryable, Transaction } from "../db/pool.ts";
import { type ProviderActor, recordEvents } from "../db/provider-audit-log.ts";
import { type PreparedConfig, ProviderError } from "./adapters/adapter.ts";
import { announceConfig } from "./choices.ts";
import type { ProvidersDeps } from "./deps.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { accessOf, providerSecretPlace, requireUnsharedCallbackSecret } from "./secrets.ts";
import { choose, lockFilial } from "./sql/choices.ts";
import * as sql from "./sql/configs.ts";
import { expireSecrets, insertSecret, listLiveSecrets, lockRotation } from "./sql/secrets.ts";

export const listProviderConfigs: Handler<ProvidersDeps, typeof bus.listProviderConfigs> = async (deps, request) => {
  const { caller, filialId, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  // One row more shows whether there is a further page.
  const rows = await sql.listProviderConfigs(deps.database, { organizationId, filialId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(await toConfigs(deps.database, rows), limit);
  return { configs: page, hasMore };
};

type Request = RequestOf<typeof bus.createProviderConfig>;

/**
 * The new config is active; the audit log names `actor`. Returns the secrets that the service or the provider has made,
 * this once. Refuses with `permission_denied`, `not_found` (the filial), `conflict` (the filial has an active config of
 * that mode, the organization has too many, or another config has the secret), `invalid_request`, or `unavailable` when
 * the provider does not answer.
 */
export async function createProviderConfig(
  deps: ProvidersDeps,
  request: Request,
  actor: ProviderActor = personActor(request.caller),
): Promise<ReplyOf<typeof bus.createProviderConfig>> {
  const { caller, filialId, kind, mode, name, reason } = request;
  requirePermission(caller, "organization.manage");
  check(deps, request);
  // Checked before the call too, so that the provider opens no account for a config that is refused below.
  await deps.database.begin((tx) => requirePlace(tx, request));
  const prepared = await prepare(deps, request);
  const config = await deps.database.begin(async (tx) => {
    await requirePlace(tx, request);
    const { organizationId } = caller;
    const row = await sql.createProviderConfig(tx, {
      organizationId,
      filialId,
      kind,
      mode,
      name,
      settings: prepared.settings,
    });
    const configId = row.config_id;
    for (const [secretName, secret] of Object.entries(prepared.secrets)) {
      const place = { configId, name: secretName };
      await requireUnsharedCallbackSecret(tx, deps, { ...place, organizationId, secret });
      await insertSecret(tx, { ...place, ...deps.keyring.seal(providerSecretPlace(place), secret) });
    }
    await choose(tx, { filialId, mode, configId });
    const subject = { kind: "provider_config", id: configId } as const;
    const facts = { filial_id: filialId, kind, mode, name, secrets: Object.keys(prepared.secrets) };
    const data = { ...facts, ...(reason === undefined ? {} : { reason }) };
    await recordEvents(tx, [{ organizationId, actor, action: "provider_config_created", subject, data }]);
    return row;
  });
  const barrier = await announceConfig(deps, config);
  return { config: await toConfig(deps.database, config), barrier, newSecrets: { ...prepared.newSecrets } };
}

function check(deps: ProvidersDeps, { kind, mode, secrets = {} }: Request): void {
  if (kind === "sandbox" && mode === "live") {
    refuseFields({
      pointer: "/mode",
      code: "does_not_fit",
      detail: "the sandbox provider moves no money, so it is for tests only",
    });
  }
  for (const [secretName, secret] of Object.entries(secrets)) {
    const pointer = `/secrets/${secretName}`;
    if (!deps.adapters[kind].secretNames.includes(secretName)) {
      refuseFields({
        pointer,
        code: "does_not_fit",
        detail: `a config of this kind has the secrets ${deps.adapters[kind].secretNames.join(", ")}`,
      });
    }
    checkSecret(pointer, secret);
  }
}

async function requirePlace(tx: Transaction, { caller, filialId, mode }: Request): Promise<void> {
  const { organizationId } = caller;
  existing(await lockFilial(tx, { organizationId, filialId }), "filial_id");
  if ((await sql.findActiveConfig(tx, { filialId, mode })) !== undefined) throw secondActive(mode);
  if ((await sql.countConfigs(tx, organizationId)) >= PROVIDER_LIMITS.configs) {
    const detail = `An organization has at most ${PROVIDER_LIMITS.configs} provider configs.`;
    throw new RefusedError({ code: "conflict", detail });
  }
}

function secondActive(mode: sql.ConfigRow["mode"]): RefusedError {
  const detail = `This filial has an active ${mode} config already; disable that one first.`;
  return new RefusedError({ code: "conflict", detail });
}

async function prepare(deps: ProvidersDeps, request: Request): Promise<PreparedConfig> {
  const { kind, name, settings, secrets = {} } = request;
  const signal = AbortSignal.timeout(PROVIDER_LIMITS.renewMs);
  try {
    return await deps.adapters[kind].prepare({ name, settings, secrets }, signal);
  } catch (error) {
    if (error instanceof ProviderError) throw refusalOfProvider(kind, error);
    throw error;
  }
}

/** The refusal for a provider that did not carry out the request. */
function refusalOfProvider(kind: sql.ConfigRow["kind"], error: ProviderError): RefusedError {
  if (error.failure !== "provider_refused") {
    const detail = "The provider does not answer now; nothing was changed.";
    return new RefusedError({ code: "unavailable", detail, retryAfterMs: PROVIDER_LIMITS.askAgainMs });
  }
  return new RefusedError({ code: "conflict", detail: `The provider (${kind}) has refused this.` });
}

/**
 * Changes the name, the settings or the status. Payments under way keep the account with which they were requested.
 * Refuses with `permission_denied`, `not_found`, `conflict` (a second active config) or `invalid_request`.
 */
export const changeProviderConfig: Handler<ProvidersDeps, typeof bus.changeProviderConfig> = async (deps, request) => {
  const {
    caller,
    configId,
    name,
    settings,
    status,
    unlessMovedSinceMs: sinceMs,
    unlessSandboxUsesIt,
    reason,
  } = request;
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const config = await deps.database.begin(async (tx) => {
    const known = existing(await sql.findConfig(tx, { organizationId, configId }));
    const { filial_id: filialId, mode, kind } = known;
    // Every change locks the filial first, so that two changes in one filial follow one another.
    await lockFilial(tx, { organizationId, filialId });
    const before = existing(await sql.lockConfig(tx, { organizationId, configId }));
    if (sinceMs !== undefined && (await sql.hasMovedSince(tx, { organizationId, configId, sinceMs }))) return before;
    // A seed takes the filial's lock too, so no sandbox can begin to use the config before the commit.
    if (unlessSandboxUsesIt === true && (await sql.isUsedBySandbox(tx, configId))) return before;
    const next = {
      name: name ?? before.name,
      settings: settings === undefined ? before.settings : { ...deps.adapters[kind].checkSettings(settings) },
      status: status ?? before.status,
    };
    if (next.status === "active" && before.status !== "active") {
      if ((await sql.findActiveConfig(tx, { filialId, mode })) !== undefined) throw secondActive(mode);
    }
    const changes = changesOf(before, next);
    if (Object.keys(changes).length === 0) return before;
    const row = await sql.changeProviderConfig(tx, configId, next);
    if (next.status !== before.status) {
      await choose(tx, { filialId, mode, configId: next.status === "active" ? configId : null });
    }
    const subject = { kind: "provider_config", id: configId } as const;
    const data = { ...changes, ...(reason === undefined ? {} : { reason }) };
    const actor = personActor(caller);
    await recordEvents(tx, [{ organizationId, actor, action: "provider_config_changed", subject, data }]);
    return row;
  });
  return { config: await toConfig(deps.database, config), barrier: await announceConfig(deps, config) };
};

interface Changeable {
  readonly name: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly status: string;
}

/** The changed fields: from what to what. */
function changesOf(before: Changeable, next: Changeable): Record<string, Json> {
  const changes: Record<string, Json> = {};
  for (const field of ["name", "settings", "status"] as const) {
    if (isDeepStrictEqual(before[field], next[field])) continue;
    changes[field] = { from: before[field] as Json, to: next[field] as Json };
  }
  return changes;
}

/**
 * Replaces a secret. The older ones and the new one are accepted for `overlapMs`, so that no callback is lost: an owner who lost
 * the answer makes another one. An older one ends with the shortest overlap since then, because the service does not know which
 * of them the provider has; instead, it refuses one too many. Refuses with `permission_denied`, `not_found`, `invalid_request`,
 * `conflict` (another config has the secret, another request is replacing one, or too many are valid), or `unavailable` when
 * the provider does not answer.
 */
export const rotateProviderSecret: Handler<ProvidersDeps, typeof bus.rotateProviderSecret> = async (deps, request) => {
  const { caller, configId, name, secret: suppliedSecret, overlapMs, reason } = request;
  requirePermission(caller, "organization.manage");
  if (suppliedSecret !== undefined) checkSecret("/secret", suppliedSecret);
  const { organizationId } = caller;
  const known = existing(await sql.findConfig(deps.database, { organizationId, configId }));
  const adapter = deps.adapters[known.kind];
  if (!adapter.secretNames.includes(name)) {
    refuseFields({
      pointer: "/name",
      code: "does_not_fit",
      detail: `this config has the secrets ${adapter.secretNames.join(", ")}`,
    });
  }
  const { config, secret } = await deps.database.begin(async (tx) => {
    // Held during the renewal, so that two rotations are stored in the order in which the provider made them.
    if (!(await lockRotation(tx, configId))) {
      throw new RefusedError({ code: "conflict", detail: "A secret of this config is just being replaced." });
    }
    if (overlapMs > 0) await requireRoom(tx, { configId, name });
    const renewed = await renew(deps, tx, { config: known, name, suppliedSecret });
    const held = existing(await sql.lockConfig(tx, { organizationId, configId }));
    const place = { configId, name };
    await requireUnsharedCallbackSecret(tx, deps, { ...place, organizationId, secret: renewed });
    await expireSecrets(tx, { ...place, overlapMs });
    await insertSecret(tx, { ...place, ...deps.keyring.seal(providerSecretPlace(place), renewed) });
    const subject = { kind: "provider_config", id: configId } as const;
    const data = { name, overlap_ms: overlapMs, ...(reason === undefined ? {} : { reason }) };
    const actor = personActor(caller);
    await recordEvents(tx, [{ organizationId, actor, action: "provider_secret_rotated", subject, data }]);
    return { config: held, secret: renewed };
  });
  const newSecrets: Record<string, string> = suppliedSecret === undefined ? { [name]: secret } : {};
  return { config: await toConfig(deps.database, config), newSecrets };
};

async function requireRoom(tx: Transaction, of: { readonly configId: number; readonly name: string }): Promise<void> {
  const live = (await listLiveSecrets(tx, [of.configId])).filter(({ name }) => name === of.name);
  if (live.length < PROVIDER_LIMITS.liveSecrets) return;
  const detail = `${live.length} secrets are valid; wait until the overlap of one is over, or rotate with an overlap of 0, which ends all older ones at once.`;
  throw new RefusedError({ code: "conflict", detail });
}

/**
 * Returns a new secret, valid at the provider. Reads the access after the lock, so that its secrets are the current
 * ones.
 */
async function renew(
  deps: ProvidersDeps,
  tx: Transaction,
  renewal: { readonly config: sql.ConfigRow; readonly name: string; readonly suppliedSecret: string | undefined },
): Promise<string> {
  const { config, name, suppliedSecret } = renewal;
  const access = await accessOf({ database: tx, keyring: deps.keyring }, config);
  const signal = AbortSignal.timeout(PROVIDER_LIMITS.renewMs);
  try {
    return await deps.adapters[config.kind].renewSecret(access, { name, suppliedSecret }, signal);
  } catch (error) {
    throw error instanceof ProviderError ? refusalOfProvider(config.kind, error) : error;
  }
}

const MODE = "test";
const SANDBOX_CONFIG = { kind: "sandbox", mode: MODE, name: "Sandbox provider", settings: {} } as const;

/**
 * Returns the filial's active test config. Without one it activates the newest disabled config of the sandbox provider,
 * or creates one. Refuses with `permission_denied`, and as `createProviderConfig` does.
 */
export const ensureTestConfig: Handler<ProvidersDeps, typeof bus.ensureTestConfig> = async (deps, request) => {
  const { caller, filialId } = request;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const findKnown = async () => {
    const known = await deps.database.begin(async (tx) => {
      existing(await lockFilial(tx, { organizationId, filialId }), "filial_id");
      return sql.findActiveConfig(tx, { filialId, mode: MODE });
    });
    if (known === undefined) return undefined;
    const barrier = await announceConfig(deps, { ...known, filial_id: filialId, mode: MODE });
    return { configId: known.config_id, isNew: false, barrier };
  };
  const known = await findKnown();
  if (known !== undefined) return known;
  try {
    const configId = await sql.findDisabledSandboxConfig(deps.database, filialId);
    const { config, barrier } =
      configId === undefined
        ? await createProviderConfig(deps, { caller, filialId, ...SANDBOX_CONFIG })
        : await changeProviderConfig(deps, { caller, configId, status: "active", reason: "A sandbox was seeded." });
    return { configId: config.configId, isNew: true, barrier };
  } catch (error) {
    // Another request may have made or activated one meanwhile.
    const other = await findKnown();
    if (other !== undefined) return other;
    throw error;
  }
};

/** Idempotent. Keeps an active test config of any provider. Refuses as `createProviderConfig` does. */
export const seedSandboxProvider: Handler<ProvidersDeps, typeof bus.seedSandboxProvider> = async (deps, request) => {
  const { organizationId, filialId } = request;
  const known = await sql.findActiveConfig(deps.database, { filialId, mode: MODE });
  if (known !== undefined) return { configId: known.config_id };
  const caller = operatorFor(organizationId);
  const { config } = await createProviderConfig(deps, { caller, filialId, ...SANDBOX_CONFIG }, OPERATOR);
  return { configId: config.configId };
};

/** A caller with an owner's permission; the audit log names the operator. */
function operatorFor(organizationId: number): Caller {
  return { userId: 0, name: "", organizationId, role: "owner", permissions: ["organization.manage"] };
}

function refuseFields(...errors: FieldError[]): never {
  throw new RefusedError({ code: "invalid_request", errors });
}

/** Secrets are keys: printable ASCII, too long to guess. */
function checkSecret(pointer: string, secret: string): void {
  const { min, max } = PROVIDER_LIMITS.secretCharacters;
  if (secret.length >= min && secret.length <= max && /^[\x21-\x7e]+$/.test(secret)) return;
  refuseFields({
    pointer,
    code: "wrong_format",
    detail: `a secret has ${min} to ${max} printable ASCII characters without spaces`,
  });
}

async function toConfigs(tx: Queryable, rows: readonly sql.ConfigRow[]): Promise<bus.ProviderConfig[]> {
  const secrets = await listLiveSecrets(
    tx,
    rows.map((row) => row.config_id),
  );
  return rows.map((row) => ({
    configId: row.config_id,
    filialId: row.filial_id,
    kind: row.kind,
    mode: row.mode,
    name: row.name,
    status: row.status,
    settings: row.settings,
    secrets: secrets
      .filter((secret) => secret.config_id === row.config_id)
      .map(({ name, created_at, expires_at }) => ({
        name,
        createdAtMs: created_at.getTime(),
        expiresAtMs: expires_at?.getTime() ?? null,
      })),
    createdAtMs: row.created_at.getTime(),
  }));
}

async function toConfig(tx: Queryable, row: sql.ConfigRow): Promise<bus.ProviderConfig> {
  const [config] = await toConfigs(tx, [row]);
  if (config === undefined) throw new Error("A config has no wire form.");
  return config;
}
