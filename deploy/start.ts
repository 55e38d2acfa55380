// `npm start`: the whole system on this machine, until Ctrl-C.
import { runApplication } from "./application.ts";

// Exits explicitly: a socket left open somewhere must not keep a stopped system running.
process.exit(await runApplication(process.env));
