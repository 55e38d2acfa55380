/** Prints the table of the virtual companion's magic names and amounts as one line of JSON, for programs. */
import { MAGIC_BEHAVIOURS } from "./magic-behaviours.ts";

process.stdout.write(`${JSON.stringify({ magic_behaviours: MAGIC_BEHAVIOURS })}\n`);
