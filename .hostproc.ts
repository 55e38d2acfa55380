import net from "node:net";
import { runServices } from "./services/runtime/run-services.ts";
let writes=0, bytes=0; const w=net.Socket.prototype.write; (net.Socket.prototype as any).write=function(b:any,...r:any[]){writes++;bytes+=b.length;return (w as any).call(this,b,...r)};
if (process.env.COUNT) setInterval(()=>{console.log("writes/s",writes,"avg bytes",Math.round(bytes/writes));writes=0;bytes=0},1000).unref();
await runServices(["stations"], { stations: async (d) => (await import("./services/stations/service.ts")).startStationsService(d) }, process.env);
