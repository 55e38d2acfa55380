/**
 * Accounts. The installation opens them, and an API key gives access. An API key is stored as its hash, a callback
 * secret nowhere.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { ApiError, emptyBodySchema, parsed, printableText, type Reply, type SandboxDeps } from "./deps.ts";
import { SANDBOX_LIMITS } from "./limits.ts";
import { type AccountRow, findAccountByKey, insertAccount, nextSecretGeneration } from "./sql.ts";

function newApiKey(): string {
  return `sbx_${randomBytes(32).toString("base64url")}`;
}

export function apiKeyHash(apiKey: string): Buffer {
  return createHash("sha256").update(apiKey).digest();
}

/** The account's secret of that generation: always the same one for the same provider key. */
export function callbackSecret(key: Buffer, accountId: string, generation: number): string {
  return createHmac("sha256", key).update(`callback-secret:${accountId}:${generation}`).digest("base64url");
}

/** `t=<seconds>,v1=<hex>` with one `v1` for each secret. */
export function signatureHeader(body: string, secrets: readonly string[], atMs: number): string {
  const timestamp = Math.floor(atMs / 1_000);
  const signatures = secrets.map(
    (secret) => `v1=${createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex")}`,
  );
  return [`t=${timestamp}`, ...signatures].join(",");
}

const accountSchema = z.strictObject({ name: printableText(200) });

export async function openAccount(deps: SandboxDeps, body: unknown): Promise<Reply> {
  const { name } = parsed(accountSchema, body);
  const accountId = `acct_${randomBytes(9).toString("hex")}`;
  const apiKey = newApiKey();
  const account = { accountId, name, apiKeyHash: apiKeyHash(apiKey), most: SANDBOX_LIMITS.accounts };
  if (!(await deps.database.begin((tx) => insertAccount(tx, account)))) {
    throw new ApiError(409, "too_many_accounts", `This sandbox has ${SANDBOX_LIMITS.accounts} accounts already.`);
  }
  const secret = callbackSecret(deps.key, accountId, 1);
  return { status: 201, json: { account: accountId, api_key: apiKey, callback_secret: secret } };
}

export async function renewCallbackSecret(deps: SandboxDeps, account: AccountRow, body: unknown): Promise<Reply> {
  parsed(emptyBodySchema, body);
  const { account_id: accountId } = account;
  const generation = await nextSecretGeneration(deps.database, accountId, SANDBOX_LIMITS.secretOverlapMs);
  return { status: 200, json: { callback_secret: callbackSecret(deps.key, accountId, generation) } };
}

/**
 * Only the installation opens accounts. Compares hashes, so that the time of the comparison reveals nothing about the
 * key.
 */
export function requireInstallation({ installationKeyHash }: SandboxDeps, request: IncomingMessage): void {
  const key = bearerOf(request);
  if (key !== undefined && timingSafeEqual(apiKeyHash(key), installationKeyHash)) return;
  throw new ApiError(401, "installation_key_invalid", "An account is opened with the installation's key only.");
}

/** Throws `ApiError` 401 `api_key_invalid`. */
export async function accountOf(deps: SandboxDeps, request: IncomingMessage): Promise<AccountRow> {
  const apiKey = bearerOf(request);
  const account = apiKey === undefined ? undefined : await findAccountByKey(deps.database, apiKeyHash(apiKey));
  if (account === undefined) throw new ApiError(401, "api_key_invalid", "There is no account with this API key.");
  return account;
}

function bearerOf(request: IncomingMessage): string | undefined {
  return /^Bearer (\S{1,300})$/.exec(request.headers.authorization ?? "")?.[1];
}
