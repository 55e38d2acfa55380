// `npm run format`: writes every file in the project's format.
import { runCommand } from "./run-command.ts";

process.exit(await runCommand("biome", ["check", "--write", "."]));
