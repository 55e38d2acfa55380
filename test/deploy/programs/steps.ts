// Supervises three steps that print what happens to them. Arguments: `slow=<name>` takes 30 s to stop, `stuck=<name>` never
// stops, `broken=<name>` fails to start, `dies=<name>` fails after everything has started.
import { setTimeout as delay } from "node:timers/promises";
import { type Step, supervise } from "../../../deploy/supervisor.ts";
import { UserError } from "../../../services/runtime/user-error.ts";

const print = (line: string) => process.stdout.write(`${line}\n`);
const is = (what: string, name: string) => process.argv.includes(`${what}=${name}`);

const steps: Step[] = ["first", "second", "third"].map((name) => ({
  name,
  start: async (control) => {
    print(`start ${name}`);
    if (is("broken", name)) throw new UserError(`${name} cannot start.`, { code: "broken", exitCode: 3 });
    if (is("dies", name))
      setTimeout(() => control.fail(new UserError(`${name} died.`, { code: "died", exitCode: 4 })), 200);
    return async (immediately) => {
      print(`stop ${name}`);
      if (is("stuck", name)) await new Promise(() => undefined);
      if (is("slow", name)) await delay(30_000, undefined, { signal: immediately }).catch(() => print(`cut ${name}`));
    };
  },
}));
steps.push({
  name: "announcement",
  start: async () => {
    print("all up");
    return undefined;
  },
});
process.exit(await supervise({ steps, print, log: undefined, stepStopMs: 2_000 }));
