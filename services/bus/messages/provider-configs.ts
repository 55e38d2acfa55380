/**
 * The owner's payment providers, and the audit log of their configs and issues. All operations except the seed need
 * `organization.manage`.
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { once, repeatable } from "../operation.ts";
import { pageAfter, pageBefore } from "../page.ts";
import { actorSchema, barrierSchema, callerSchema as caller } from "./caller.ts";
import { auditLogSearch, throughId } from "./events.ts";
import { nameSchema } from "./name.ts";
import { reasonSchema } from "./sentence.ts";

const id = z.int().positive();
/** For the audit log. */
const reason = reasonSchema.optional();

/** The kinds of providers: each has an adapter. */
export const PROVIDER_KINDS = ["sandbox", "emvco_generic"] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];
/** Test configs serve sandbox stations, live ones all others. */
export const PROVIDER_MODES = ["test", "live"] as const;

export const providerConfigSchema = z.object({
  configId: id,
  filialId: id,
  kind: z.enum(PROVIDER_KINDS),
  mode: z.enum(PROVIDER_MODES),
  name: z.string(),
  /** The service uses the `active` config, one per filial and mode. */
  status: z.enum(["active", "disabled"]),
  /** What the adapter needs besides secrets: merchant data, addresses. */
  settings: z.record(z.string(), z.unknown()),
  /** The names and times of the stored secrets, never their values. During a rotation, one name is listed two or three times. */
  secrets: z.array(z.object({ name: z.string(), createdAtMs: z.number(), expiresAtMs: z.number().nullable() })),
  createdAtMs: z.number(),
});
export type ProviderConfig = z.infer<typeof providerConfigSchema>;
const configReply = z.object({ config: providerConfigSchema, barrier: barrierSchema });

/** The configs of the caller's organization, by id. */
export const listProviderConfigs = repeatable(
  "providers.listProviderConfigs",
  z.object({ caller, filialId: id.optional(), ...pageAfter }),
  z.object({ configs: z.array(providerConfigSchema), hasMore: z.boolean() }),
);
/** The caller may set secrets. The service generates the others, and only this reply has them. */
export const createProviderConfig = once(
  "providers.createProviderConfig",
  z.object({
    caller,
    filialId: id,
    kind: z.enum(PROVIDER_KINDS),
    mode: z.enum(PROVIDER_MODES),
    name: nameSchema,
    settings: z.record(z.string(), z.unknown()),
    secrets: z.record(z.string(), z.string()).optional(),
    reason,
  }),
  configReply.extend({ newSecrets: z.record(z.string(), z.string()) }),
);
export const changeProviderConfig = once(
  "providers.changeProviderConfig",
  z.object({
    caller,
    configId: id,
    name: nameSchema.optional(),
    settings: z.record(z.string(), z.unknown()).optional(),
    status: z.enum(["active", "disabled"]).optional(),
    /** Nothing changes while a sandbox uses the config. */
    unlessSandboxUsesIt: z.literal(true).optional(),
    /** Nothing changes when the config got another status at or after this time. */
    unlessMovedSinceMs: z.number().optional(),
    reason,
  }),
  configReply,
);
/**
 * Returns the filial's active test config and announces it to the filial's stations (`barrier`). Without one it activates
 * the filial's disabled config of the sandbox provider, or creates one; then `isNew` is true. Refuses with `not_found` for
 * another organization's filial, and with `unavailable` or `conflict` when the sandbox provider opens no account.
 */
export const ensureTestConfig = once(
  "providers.ensureTestConfig",
  z.object({ caller, filialId: id }),
  z.object({ configId: id, isNew: z.boolean(), barrier: barrierSchema }),
);
/**
 * Creates a test config of the sandbox provider for a filial without an active test config. It is idempotent, and has no
 * HTTP endpoint: the operator calls it on the bus.
 */
export const seedSandboxProvider = repeatable(
  "providers.seedSandboxProvider",
  z.object({ organizationId: id, filialId: id }),
  z.object({ configId: id }),
);
/**
 * Generates a new callback secret, or stores `secret`. For `overlapMs` the service also accepts the old one. Only this
 * reply has a generated secret.
 */
export const rotateProviderSecret = once(
  "providers.rotateProviderSecret",
  z.object({
    caller,
    configId: id,
    name: z.string(),
    secret: z.string().optional(),
    overlapMs: z.int().min(0).max(BOUNDS.secretOverlapMs),
    reason,
  }),
  z.object({ config: providerConfigSchema, newSecrets: z.record(z.string(), z.string()) }),
);

/** `provider_issue` is the older name of `issue`, from before runs raised issues. */
export const PROVIDER_EVENT_SUBJECTS = [
  "provider_config",
  "provider_issue",
  "issue",
  "statement_line",
  "organization",
] as const;

/** One entry of the audit log of provider configs and issues; never a secret. */
export const providerEventSchema = z.object({
  eventId: id,
  atMs: z.number(),
  actor: actorSchema,
  action: z.string(),
  subject: z.object({ kind: z.enum(PROVIDER_EVENT_SUBJECTS), id }),
  data: z.record(z.string(), z.unknown()),
});
export type ProviderEventEntry = z.infer<typeof providerEventSchema>;

/**
 * Oldest first after `sinceId`; without it newest first, before `beforeId` if that is given. A new event never
 * has a lower id than an event that was already read.
 */
export const listProviderEvents = repeatable(
  "providers.listProviderEvents",
  z.object({ caller, ...auditLogSearch, ...pageAfter, ...pageBefore }),
  z.object({ events: z.array(providerEventSchema), ...throughId }),
);
