/** `npm run pictures`: runs the browser tests, which draw each state that they reach into `docs/pictures/`. */
import { runCommand } from "../../deploy/run-command.ts";
import { PICTURES } from "./pictures.ts";

process.env["PICTURES"] = PICTURES;
const { code } = await runCommand("vitest", ["run", "test/browser", ...process.argv.slice(2)]);
process.exitCode = code;
