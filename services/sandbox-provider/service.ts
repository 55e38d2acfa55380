/**
 * The sandbox provider: an external party that runs inside the product. It has an API, a guest page, signed callbacks,
 * a status inquiry and a statement, like a real provider. No other service imports it.
 */
import { closeDatabase, openDatabase } from "../db/pool.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { parseSettings, requireDatabaseUrl } from "../runtime/settings.ts";
import { apiKeyHash } from "./accounts.ts";
import type { SandboxDeps } from "./deps.ts";
import { SANDBOX_LIMITS } from "./limits.ts";
import { startHttpServer } from "./server.ts";
import { sandboxProviderSettingsSchema } from "./settings.ts";
import { startWork } from "./work.ts";

/** Throws UserError for a key that is missing or a port that is taken. `url` is where it answers. */
export async function startSandboxProviderService(shared: ServiceDeps): Promise<Service & { readonly url: string }> {
  const settings = parseSettings(sandboxProviderSettingsSchema, shared.environment);
  const database = openDatabase({
    url: requireDatabaseUrl(shared.settings),
    name: "sandbox-provider",
    maxConnections: shared.connections ?? SANDBOX_LIMITS.databaseConnections,
  });
  let publicUrl = settings.SANDBOX_PROVIDER_PUBLIC_URL ?? "";
  const deps: SandboxDeps = {
    database,
    log: shared.log,
    key: settings.SANDBOX_PROVIDER_KEY,
    installationKeyHash: apiKeyHash(settings.SANDBOX_PROVIDER_INSTALLATION_KEY.toString("base64url")),
    decidesAfterMs: settings.SANDBOX_PROVIDER_DECIDES_AFTER_MS,
    callbackOrigin: new URL(settings.PROVIDER_CALLBACK_BASE_URL).origin,
    certificateFile: settings.GATEWAY_CERTIFICATE_FILE,
    activity: { lastPostAtMs: Number.NEGATIVE_INFINITY },
    guestUrl: (paymentId) => new URL(`/pay/${paymentId}`, publicUrl).href,
  };
  const host = settings.SANDBOX_PROVIDER_HOST;
  try {
    const server = await startHttpServer(deps, { host, port: settings.SANDBOX_PROVIDER_PORT });
    const url = `http://${host.includes(":") ? `[${host}]` : host}:${server.port}`;
    if (publicUrl === "") publicUrl = url;
    const work = startWork(deps);
    shared.log.info({ url }, "the sandbox provider listens");
    return {
      url,
      async stop() {
        await server.stop();
        await work.stop();
        await closeDatabase(database);
      },
    };
  } catch (error) {
    await closeDatabase(database);
    throw error;
  }
}
