// `npm start`: the whole system on this machine, until Ctrl-C.
import { runApplication } from "./application.ts";

// A reader of this output that is gone, or a full disk below it, stops nothing.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

// Exits explicitly: a socket left open somewhere must not keep a stopped system running.
process.exit(await runApplication(process.env));
