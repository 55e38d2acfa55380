/** Runs one gateway: `node gateway/main.ts`, with its settings in the environment; `--help` lists them. */
import { exitWith } from "../services/runtime/lifecycle.ts";
import { helpText, refuseArguments } from "../services/runtime/settings-help.ts";
import { GATEWAY_DESCRIPTION } from "./settings.ts";

async function main(args: readonly string[]): Promise<void> {
  if (args.includes("--help")) return void process.stdout.write(helpText(GATEWAY_DESCRIPTION));
  refuseArguments(args);
  // Loaded only now, so that the help needs no HTTP library.
  const { runGateway } = await import("./run-gateway.ts");
  await runGateway(process.env);
}

main(process.argv.slice(2)).catch(exitWith);
