/** What happens once everything runs: the sandbox is seeded, its virtual devices attach, and the newcomer is told. */
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
      start: async () => {
        const { addresses, settings } = context;
        facts = await seed({
          natsUrl: addresses.get("nats"),
          dataDir: settings.dataDir,
          baseUrl: addresses.get("gateway"),
        });
        return undefined;
      },
    },
    virtualDevicesStep(context, readFacts),
    {
      name: "printout",
      start: async () => {
        context.say(printout(readFacts(), writeFacts(context.settings.dataDir, readFacts())));
        return undefined;
      },
    },
  ];
}
