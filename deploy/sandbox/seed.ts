/** Seeds the sandbox through the services at each start. Ids and passwords stay the same, and nothing is created twice. */
import { execFile } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { connectBus } from "../../services/bus/connection.ts";
import { seedSandboxConsumer } from "../../services/bus/messages/consumers.ts";
import { createLoginLink } from "../../services/bus/messages/login-links.ts";
import { seedSandboxProvider } from "../../services/bus/messages/provider-configs.ts";
import { seedSandbox } from "../../services/bus/messages/sandbox-organization.ts";
import { call } from "../../services/bus/operation.ts";
import { UserError } from "../../services/runtime/user-error.ts";
import type { ApplicationContext } from "../application-context.ts";
import { secretOf } from "../data-folder.ts";
import { deployLimits } from "../limits.ts";
import type { MagicBehaviourFacts, SandboxFacts } from "./facts.ts";

/** The number of random bytes in a credential that the robotics service creates. */
const ROBOTICS_CREDENTIAL_BYTES = 32;

/** Throws UserError `sandbox_not_seeded` when a service fails. */
export async function seed(context: ApplicationContext, signal: AbortSignal): Promise<SandboxFacts> {
  const { addresses, settings, checkout } = context;
  const baseUrl = addresses.get("gateway");
  const sandboxProviderUrl = addresses.get("sandboxProvider");
  const passwords = {
    ownerPassword: secretOf(settings.dataDir, "sandboxOwner"),
    cashierPassword: secretOf(settings.dataDir, "sandboxCashier"),
    operatorPassword: secretOf(settings.dataDir, "sandboxOperator"),
  };
  const log = { info: () => undefined, warn: () => undefined };
  const bus = await connectBus({ url: addresses.get("nats"), access: settings.natsAccess, name: "start", log, signal });
  try {
    const seeded = await call(bus.nc, seedSandbox, passwords, deployLimits.seedMs);
    const { organizationId, filialId } = seeded;
    await call(bus.nc, seedSandboxProvider, { organizationId, filialId }, deployLimits.seedMs);
    const credential = `rc_${secretOf(settings.dataDir, "sandboxRobotics", ROBOTICS_CREDENTIAL_BYTES)}`;
    const credentialHash = createHash("sha256").update(credential).digest("hex");
    const robots = { organizationId, filialId, credentialHash };
    const { consumerId } = await call(bus.nc, seedSandboxConsumer, robots, deployLimits.seedMs);
    const [station, demoStation] = seeded.stations;
    if (station === undefined || demoStation === undefined) throw new Error("The registry seeded no stations.");
    const linked = { organizationId, stationId: demoStation.stationId };
    const { token } = await call(bus.nc, createLoginLink, linked, deployLimits.seedMs);
    return {
      baseUrl,
      certificate: settings.tls === undefined ? null : describeCertificate(settings.tls.certFile),
      owner: { ...seeded.owner, password: passwords.ownerPassword },
      cashier: { ...seeded.cashier, password: passwords.cashierPassword },
      operator: { ...seeded.operator, password: passwords.operatorPassword },
      robotics: { consumerId, credential },
      station,
      demoStation,
      magicAmounts: await readMagicAmounts(sandboxProviderUrl),
      magicBehaviours: await readMagicBehaviours(checkout),
      links: {
        start: `${baseUrl}/start/#${token}`,
        apiPage: `${baseUrl}/docs/`,
        openapi: `${baseUrl}/openapi.json`,
        health: `${baseUrl}/healthz`,
        readiness: `${baseUrl}/readyz`,
        magicAmounts: `${sandboxProviderUrl}/magic-amounts`,
      },
    };
  } catch (cause) {
    throw new UserError("The sandbox could not be seeded; the services' log has the reason.", {
      code: "sandbox_not_seeded",
      cause,
    });
  } finally {
    await bus.close();
  }
}

const magicAmountsSchema = z.object({
  magic_amounts: z.array(z.object({ ending: z.string(), provider: z.string(), outcome: z.string() })),
});

/** Reads the sandbox provider's magic amounts, over HTTP because the provider is an outside party. */
async function readMagicAmounts(sandboxProviderUrl: string): Promise<SandboxFacts["magicAmounts"]> {
  const url = new URL("/magic-amounts", sandboxProviderUrl);
  const answer = await fetch(url, { signal: AbortSignal.timeout(deployLimits.seedMs) });
  return magicAmountsSchema.parse(await answer.json()).magic_amounts;
}

const magicBehavioursSchema = z.object({
  magic_behaviours: z.array(
    z.object({
      nameEnding: z.string(),
      amountEnding: z.string().nullable(),
      companion: z.string(),
      outcome: z.string(),
    }),
  ),
});

/** Reads the virtual companion's magic names and amounts. A program of `clients/` prints them: it is an outside party. */
async function readMagicBehaviours(checkout: string): Promise<readonly MagicBehaviourFacts[]> {
  const script = join(checkout, "clients", "print-magic-behaviours.ts");
  const options = { timeout: deployLimits.seedMs };
  const { stdout } = await promisify(execFile)(process.execPath, [script], options);
  return magicBehavioursSchema.parse(JSON.parse(stdout)).magic_behaviours;
}

function describeCertificate(file: string): SandboxFacts["certificate"] {
  const publicKey = new X509Certificate(readFileSync(file)).publicKey.export({ type: "spki", format: "der" });
  return { file, publicKeyPin: `sha256//${createHash("sha256").update(publicKey).digest("base64")}` };
}
