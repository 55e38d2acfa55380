import { runServices } from "./services/runtime/run-services.ts";
await runServices(["stations"], { stations: async (d) => (await import("./services/stations/service.ts")).startStationsService(d) }, process.env);
