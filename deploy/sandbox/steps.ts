/** The steps after everything runs: seed the sandbox, attach its virtual devices, and print its facts. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fetch } from "undici";
import { z } from "zod";
import { agentTrusting } from "../../services/runtime/trusted-certificate.ts";
import { UserError } from "../../services/runtime/user-error.ts";
import type { ApplicationContext } from "../application-context.ts";
import { deployLimits } from "../limits.ts";
import { runProcess } from "../service-steps.ts";
import type { Step, StepControl, StopStep } from "../supervisor.ts";
import { printout, type SandboxDevice, type SandboxFacts, writeFacts } from "./facts.ts";
import { seed } from "./seed.ts";

export function sandboxSteps(context: ApplicationContext): Step[] {
  let facts: SandboxFacts | undefined;
  const seededFacts = (): SandboxFacts => {
    if (facts === undefined) throw new Error("The facts of the sandbox are read before it is seeded.");
    return facts;
  };
  return [
    {
      name: "sandbox",
      start: async ({ stopping }) => {
        facts = await seed(context, stopping);
        return undefined;
      },
    },
    { name: "virtual devices", start: (control) => startDevices(context, control, seededFacts()) },
    {
      name: "printout",
      start: async () => {
        const printed = withoutClaimedCodes(seededFacts());
        context.print(printout(printed, writeFacts(context.settings.dataDir, printed)));
        return undefined;
      },
    },
  ];
}

/** The virtual devices have claimed the demo station's codes by then. */
function withoutClaimedCodes(facts: SandboxFacts): SandboxFacts {
  const { demoStation } = facts;
  const devices = demoStation.devices.map((device) => ({ ...device, enrollmentCode: null }));
  return { ...facts, demoStation: { ...demoStation, devices } };
}

type Program = "virtual-companion" | "virtual-display";
const PROGRAMS: readonly (readonly [kind: string, program: Program])[] = [
  ["smart_pos_companion", "virtual-companion"],
  ["customer_display", "virtual-display"],
];

/**
 * Starts the virtual companion and display of the demo station: ordinary clients of the device API, in separate processes.
 * Both start at the same time.
 */
async function startDevices(context: ApplicationContext, control: StepControl, facts: SandboxFacts): Promise<StopStep> {
  const stops = await Promise.all(
    facts.demoStation.devices.map(async (device) => {
      const program = PROGRAMS.find(([kind]) => kind === device.kind)?.[1];
      if (program === undefined) return undefined;
      return await startDevice(context, control, { facts, device, program }).catch((error: unknown) => {
        // The owner may have revoked the device; the system works without it.
        context.print(`${program}: not attached. ${error instanceof UserError ? error.message : ""}`.trim());
        return undefined;
      });
    }),
  );
  return async (immediately) => {
    await Promise.all(stops.map(async (stop) => await stop?.(immediately)));
  };
}

/** A device that ends later is started again. When it is abandoned, one sentence reports it, and nothing else is stopped. */
async function startDevice(
  context: ApplicationContext,
  control: StepControl,
  which: { readonly facts: SandboxFacts; readonly device: SandboxDevice; readonly program: Program },
): Promise<StopStep> {
  const { facts, device, program } = which;
  const credentialFile = join(context.settings.dataDir, `${program}.json`);
  const environment = {
    PATH: context.environment["PATH"],
    BASE_URL: facts.baseUrl,
    ...(facts.certificate === null ? {} : { GATEWAY_CERTIFICATE_FILE: facts.certificate.file }),
    CREDENTIAL_FILE: credentialFile,
    ENROLLMENT_CODE: await enrollmentCode(facts, device, credentialFile),
    LOG_LEVEL: context.settings.logLevel,
  };
  const quiet = { ...control, fail: (error: UserError) => context.print(error.message) };
  return await runProcess(context, quiet, { name: program, script: `clients/${program}.ts`, environment });
}

/** The seed's code, or a new one when the device has enrolled but its credential file is missing or damaged. */
async function enrollmentCode(facts: SandboxFacts, device: SandboxDevice, credentialFile: string): Promise<string> {
  if (device.enrollmentCode !== null) return device.enrollmentCode;
  if (holdsCredential(credentialFile)) return "";
  const { token } = await post(facts, "session/", z.object({ token: z.string() }), facts.owner);
  await post(facts, `devices/${device.deviceId}/reset/`, z.looseObject({}), {}, token);
  const path = `devices/${device.deviceId}/enrollment-codes/`;
  return (await post(facts, path, z.object({ code: z.string() }), {}, token)).code;
}

/** What a device stores once it has enrolled. */
const storedCredentialSchema = z.object({ device_id: z.int(), credential: z.string().min(1) });

function holdsCredential(file: string): boolean {
  try {
    return storedCredentialSchema.safeParse(JSON.parse(readFileSync(file, "utf8"))).success;
  } catch {
    return false;
  }
}

async function post<T>(
  facts: SandboxFacts,
  path: string,
  schema: z.ZodType<T>,
  body: object,
  token?: string,
): Promise<T> {
  const dispatcher = agentTrusting(facts.certificate?.file);
  const response = await fetch(`${facts.baseUrl}/api/backoffice/v1/${path}`, {
    dispatcher,
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(deployLimits.seedMs),
  });
  const answer = await response.json();
  await dispatcher.close();
  return schema.parse(answer);
}
