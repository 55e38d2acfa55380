// `npm run format`: writes every file in the project's format.
import { runCommand } from "./run-command.ts";

const { code } = await runCommand("biome", ["check", "--write", "."]);
process.exit(code);
