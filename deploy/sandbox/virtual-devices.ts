/** The virtual companion and display of the demo station: ordinary clients of the device API, in processes of their own. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fetch } from "undici";
import { z } from "zod";
import { agentTrusting } from "../../services/runtime/trusted-certificate.ts";
import { UserError } from "../../services/runtime/user-error.ts";
import { type ApplicationContext, logFor } from "../application-context.ts";
import { keepRunning } from "../keep-running.ts";
import { deployLimits } from "../limits.ts";
import { startServiceProcess } from "../service-process.ts";
import type { Step, StepControl, StopStep } from "../supervisor.ts";
import type { SandboxDevice, SandboxFacts } from "./facts.ts";

type Program = "virtual-companion" | "virtual-display";
const PROGRAMS: readonly (readonly [kind: string, program: Program])[] = [
  ["smart_pos_companion", "virtual-companion"],
  ["customer_display", "virtual-display"],
];

/** What a device stores once it has enrolled. */
const storedCredentialSchema = z.object({ device_id: z.int(), credential: z.string().min(1) });

/** Both start side by side: each waits for its own answers, not for the other's. */
export function virtualDevicesStep(context: ApplicationContext, readFacts: () => SandboxFacts): Step {
  return {
    name: "virtual devices",
    start: async (control) => {
      const stops = await Promise.all(
        PROGRAMS.map(([kind, program]) =>
          startDevice(context, control, { facts: readFacts(), kind, program }).catch((error: unknown) => {
            // The owner may have revoked the device; the system works without it.
            context.say(`${program}: not attached. ${error instanceof UserError ? error.message : ""}`.trim());
            return undefined;
          }),
        ),
      );
      return async (immediately) => {
        await Promise.all(stops.filter((stop) => stop !== undefined).map((stop) => stop(immediately)));
      };
    },
  };
}

/** A device that ends later is started again; one that is abandoned is reported in one sentence and ends nothing else. */
async function startDevice(
  context: ApplicationContext,
  control: StepControl,
  which: { readonly facts: SandboxFacts; readonly kind: string; readonly program: Program },
): Promise<StopStep | undefined> {
  const { facts, kind, program } = which;
  const device = facts.demoStation.devices.find((candidate) => candidate.kind === kind);
  if (device === undefined) return undefined;
  const ownCredential = credentialFile(context, program);
  const log = logFor(context, program);
  const options = {
    name: program,
    script: join(context.checkout, "clients", `${program}.ts`),
    args: [],
    environment: {
      PATH: context.environment["PATH"],
      BASE_URL: facts.baseUrl,
      ...(facts.certificate === null ? {} : { GATEWAY_CERTIFICATE_FILE: facts.certificate.file }),
      CREDENTIAL_FILE: ownCredential,
      ENROLLMENT_CODE: await enrollmentCode(facts, device, ownCredential),
      LOG_LEVEL: context.settings.logLevel,
    },
    ...log,
  };
  const stop = await keepRunning({
    name: program,
    logFile: log.logFile,
    control: { ...control, fail: (error) => context.say(error.message) },
    say: context.say,
    room: context.room,
    launch: (stopping) => startServiceProcess({ ...options, control: { stopping } }),
  });
  context.say(`${program}: up.`);
  return stop;
}

/** Where a virtual device keeps its credential between two starts. */
function credentialFile(context: ApplicationContext, program: string): string {
  return join(context.settings.dataDir, `${program}.json`);
}

/** The seed's code, or a new one when the device has enrolled but its credential file is gone or damaged. */
async function enrollmentCode(facts: SandboxFacts, device: SandboxDevice, storedIn: string): Promise<string> {
  if (device.enrollmentCode !== null) return device.enrollmentCode;
  if (holdsCredential(storedIn)) return "";
  const { token } = await post(facts, "session/", z.object({ token: z.string() }), facts.owner);
  await post(facts, `devices/${device.deviceId}/reset/`, z.looseObject({}), {}, token);
  const path = `devices/${device.deviceId}/enrollment-codes/`;
  return (await post(facts, path, z.object({ code: z.string() }), {}, token)).code;
}

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
