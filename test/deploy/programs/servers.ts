// The servers part of `npm start` alone, with the real steps: prints the addresses, and runs until it is stopped.
import { join } from "node:path";
import { createContext, logFor } from "../../../deploy/application-context.ts";
import { dataFolderStep, diskStep, natsStep, portStep, postgresStep } from "../../../deploy/server-steps.ts";
import { readSettings } from "../../../deploy/settings.ts";
import { supervise } from "../../../deploy/supervisor.ts";

const print = (line: string) => process.stdout.write(`${line}\n`);
const context = createContext({
  settings: readSettings(process.env),
  checkout: join(import.meta.dirname, "..", "..", ".."),
  environment: process.env,
  print,
});
const announce = async () => {
  print(`nats=${context.addresses.get("nats")} database=${context.addresses.get("database")}`);
  return undefined;
};
process.exit(
  await supervise({
    steps: [
      diskStep(context),
      dataFolderStep(context),
      portStep(context),
      natsStep(context),
      postgresStep(context),
      { name: "announcement", start: announce },
    ],
    print,
    log: logFor(context, "start"),
  }),
);
