/** Seeds the sandbox through the services, as often as the system starts: ids stay, passwords stay, nothing doubles. */
import { createHash, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { connectBus } from "../../services/bus/connection.ts";
import { seedSandboxConsumer } from "../../services/bus/messages/consumers.ts";
import { seedSandboxProvider } from "../../services/bus/messages/provider-configs.ts";
import { seedSandbox } from "../../services/bus/messages/sandbox.ts";
import type { ServerAccess } from "../../services/bus/nats-server.ts";
import { call } from "../../services/bus/operation.ts";
import { UserError } from "../../services/runtime/user-error.ts";
import { deployLimits } from "../limits.ts";
import { openSecrets } from "../secrets.ts";
import type { SandboxFacts } from "./facts.ts";
import { readMagicBehaviours } from "./magic-behaviours.ts";

export interface SeedDeps {
  /** Ends the wait for the bus. */
  readonly signal: AbortSignal;
  readonly natsUrl: string;
  readonly natsAccess: ServerAccess;
  readonly dataDir: string;
  readonly baseUrl: string;
  /** Undefined where the gateway does not speak TLS itself. */
  readonly certificateFile: string | undefined;
  readonly sandboxProviderUrl: string;
  /** The folder of the product, for the virtual companion's table. */
  readonly checkout: string;
}

/** As many random bytes as the robotics service gives a credential of its own making. */
const ROBOTICS_CREDENTIAL_BYTES = 32;

/** Throws UserError `sandbox_not_seeded` when the services do not do it. */
export async function seed(deps: SeedDeps): Promise<SandboxFacts> {
  const secrets = openSecrets(deps.dataDir);
  const passwords = {
    ownerPassword: secrets.value("sandboxOwner"),
    cashierPassword: secrets.value("sandboxCashier"),
    operatorPassword: secrets.value("sandboxOperator"),
  };
  const silent = { info: () => undefined, warn: () => undefined };
  const { natsUrl: url, natsAccess: access, signal } = deps;
  const bus = await connectBus({ url, access, name: "start", log: silent, signal });
  try {
    const seeded = await call(bus.nc, seedSandbox, passwords, deployLimits.seedMs);
    const { organizationId, filialId } = seeded;
    await call(bus.nc, seedSandboxProvider, { organizationId, filialId }, deployLimits.seedMs);
    const credential = `rc_${secrets.value("sandboxRobotics", ROBOTICS_CREDENTIAL_BYTES)}`;
    const credentialHash = createHash("sha256").update(credential).digest("hex");
    const robots = { organizationId, filialId, credentialHash };
    const { consumerId } = await call(bus.nc, seedSandboxConsumer, robots, deployLimits.seedMs);
    const [station, demoStation] = seeded.stations;
    if (station === undefined || demoStation === undefined) throw new Error("The registry seeded no stations.");
    return {
      baseUrl: deps.baseUrl,
      certificate: deps.certificateFile === undefined ? null : describeCertificate(deps.certificateFile),
      owner: { ...seeded.owner, password: passwords.ownerPassword },
      cashier: { ...seeded.cashier, password: passwords.cashierPassword },
      operator: { ...seeded.operator, password: passwords.operatorPassword },
      robotics: { consumerId, credential },
      station,
      demoStation,
      magicAmounts: await readMagicAmounts(deps.sandboxProviderUrl),
      magicBehaviours: await readMagicBehaviours(deps.checkout),
      links: {
        apiPage: `${deps.baseUrl}/docs/`,
        openapi: `${deps.baseUrl}/openapi.json`,
        health: `${deps.baseUrl}/healthz`,
        readiness: `${deps.baseUrl}/readyz`,
        magicAmounts: `${deps.sandboxProviderUrl}/magic-amounts`,
      },
    };
  } catch (cause) {
    throw new UserError("The sandbox could not be seeded; the services' log says why.", {
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

/** What the sandbox provider itself says about its amounts: it is an outside party, so it is asked over HTTP. */
async function readMagicAmounts(sandboxProviderUrl: string): Promise<SandboxFacts["magicAmounts"]> {
  const url = new URL("/magic-amounts", sandboxProviderUrl);
  const answer = await fetch(url, { signal: AbortSignal.timeout(deployLimits.seedMs) });
  return magicAmountsSchema.parse(await answer.json()).magic_amounts;
}

function describeCertificate(file: string): SandboxFacts["certificate"] {
  const publicKey = new X509Certificate(readFileSync(file)).publicKey.export({ type: "spki", format: "der" });
  return { file, publicKeyPin: `sha256//${createHash("sha256").update(publicKey).digest("base64")}` };
}
