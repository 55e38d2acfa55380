import { connectBus } from "./services/bus/connection.ts";
import { openFeed } from "./services/bus/feed.ts";
import { createLog } from "./services/runtime/log.ts";
import { ensureStreams } from "./services/bus/ensure-streams.ts";
const log = createLog({service:"try", level:"warn"}); const url="nats://127.0.0.1:14222";
const bus = await connectBus({url, name:"try", log}); const scanBus=await connectBus({url,name:"scan",log}); await ensureStreams(bus,{replicas:1});
console.log("messages",(await bus.jsm.streams.info("STATION_LOG")).state.messages);
let stop=false; let max=0, n=0, kvmax=0; const slow:number[]=[];
const app=(async()=>{ let i=0; while(!stop){ const a=performance.now(); await bus.js.publish("station.log.zz."+(i++%50),"x",{timeout:20000}); const d=performance.now()-a; max=Math.max(max,d); if(d>50) slow.push(Math.round(d)); n++; } })();
const kv=(async()=>{ const b2=await connectBus({url,name:"kv",log}); while(!stop){ const a=performance.now(); await b2.nc.request("$KV.LEASES.host.zz","x",{timeout:20000}); kvmax=Math.max(kvmax,performance.now()-a); await new Promise(r=>setTimeout(r,20)); } await b2.close(); })();
for (const headersOnly of [true]) for (const mode of ["whole","whole"]) {
  max=0;n=0;kvmax=0; slow.length=0; let c=0, first=0; const t=performance.now();
  if(mode==="whole"){ const f=openFeed(scanBus,{stream:"STATION_LOG",filter:"station.log.*.*",headersOnly,onMessage:()=>{ if(!c++) first=performance.now()-t; },onReset(){},log}); await f.caughtUp; f.stop(); }
  else { for (let p=0;p<32;p++){ const f=openFeed(scanBus,{stream:"STATION_LOG",filter:`station.log.${p.toString(16).padStart(2,"0")}.*`,headersOnly,onMessage:()=>{ c++; },onReset(){},log}); await f.caughtUp; f.stop(); } }
  console.log(mode,"headersOnly",headersOnly,"ms",(performance.now()-t).toFixed(0),"first",first.toFixed(0),"count",c,"appends meanwhile",n,"max append ms",max.toFixed(0),"kv max",kvmax.toFixed(0),"slow",slow.join());
  await new Promise(r=>setTimeout(r,1000));
}
stop=true; await app; await kv; await bus.close(); await scanBus.close();
