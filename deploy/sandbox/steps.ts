/** What happens once everything runs: the sandbox is seeded, its virtual devices attach, and its facts are printed. */
import type { ApplicationContext } from "../application-context.ts";
import type { Step } from "../supervisor.ts";
import { type SandboxFacts, writeFacts } from "./facts.ts";
import { printout } from "./printout.ts";
import { seed } from "./seed.ts";
import { virtualDevicesStep } from "./virtual-devices.ts";

export function sandboxSteps(context: ApplicationContext): Step[] {
  let facts: SandboxFacts | undefined;
  const readFacts = (): SandboxFacts => {
    if (facts === undefined) throw new Error("The sandbox is asked for before it is seeded.");
    return facts;
  };
  return [
    {
      name: "sandbox",
      start: async ({ stopping }) => {
        const { addresses, settings } = context;
        facts = await seed({
          signal: stopping,
          natsUrl: addresses.get("nats"),
          natsAccess: context.settings.natsAccess,
          dataDir: settings.dataDir,
          baseUrl: addresses.get("gateway"),
          certificateFile: settings.tls?.certFile,
          sandboxProviderUrl: addresses.get("sandboxProvider"),
          checkout: context.checkout,
        });
        return undefined;
      },
    },
    virtualDevicesStep(context, readFacts),
    {
      name: "printout",
      start: async () => {
        const { dataDir } = context.settings;
        const printed = withoutClaimedCodes(readFacts());
        context.say(printout(printed, writeFacts(dataDir, printed)));
        return undefined;
      },
    },
  ];
}

/** The demo station's codes are spent by then: its virtual devices have claimed them. */
function withoutClaimedCodes(facts: SandboxFacts): SandboxFacts {
  const { demoStation } = facts;
  const devices = demoStation.devices.map((device) => ({ ...device, enrollmentCode: null }));
  return { ...facts, demoStation: { ...demoStation, devices } };
}
