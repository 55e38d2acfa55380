import { connectBus } from "./services/bus/connection.ts";
import { ensureStreams } from "./services/bus/ensure-streams.ts";
import { askStation } from "./services/bus/station-client.ts";
import { stationLogSubject, heartbeatSubject } from "./services/bus/subjects.ts";
import { followSwitches } from "./services/bus/switches-replica.ts";
import { StationHost } from "./services/stations/host.ts";
import { readStationsSettings } from "./services/stations/settings.ts";
import { createLog } from "./services/runtime/log.ts";
import { headers } from "nats";
import { step } from "./machines/station/step.ts"; import { encodeCommit } from "./machines/station/commit.ts"; import { DEFAULT_MACHINE_SETTINGS } from "./machines/settings.ts"; import { NO_KILL_SWITCHES } from "./machines/standing.ts";
import { encodeWake, wakeOf } from "./services/stations/wake.ts";
const log = createLog({service:"try", level:"info"}); const url="nats://127.0.0.1:14222";
const bus = await connectBus({url, name:"try", log}); await ensureStreams(bus,{replicas:1});
const N=Number(process.argv[2]??200000);
await bus.jsm.streams.purge("STATION_LOG"); await bus.jsm.streams.purge("LIVENESS");
const online=process.argv[3]==="online";
let t=Date.now(); const now=Date.now();
for (let i=1;i<=N;i++) {
  let s:any=null; const go=(command:any)=>{ s=(step(s,{command,commandId:"c"+i,actor:{kind:"registry",id:0},atMs:now,switches:NO_KILL_SWITCHES,settings:DEFAULT_MACHINE_SETTINGS}) as any).state; };
  go({type:"station_put",stationId:i,station:{organizationId:1,filialId:1,name:"Bar",currency:"EUR",status:"active",revision:1}});
  go({type:"device_put",device:{deviceId:i,name:"d",kind:"smart_pos_companion",capabilities:["handoff_present","outcome_report"],status:"active",handoffTarget:"app://x",revision:1}});
  if (online) go({type:"device_seen",deviceId:i,seenAtMs:now});
  const h=headers(); h.set("Station-Wake",encodeWake(wakeOf(s)));
  bus.nc.publish(stationLogSubject(i), encodeCommit({machineVersion:1,version:1,atMs:now,commandId:"c",actor:{kind:"registry",id:0},events:[],reply:{ok:true,type:"accepted"},state:s}),{headers:h});
  if (online) bus.nc.publish(heartbeatSubject(i,i), `{"atMs":1,"summary":{}}`);
  if(i%1000===0) await bus.nc.flush();
}
while((await bus.jsm.streams.info("STATION_LOG")).state.messages<N) await new Promise(r=>setTimeout(r,100));
console.log("prepared", N, Date.now()-t);
const switches=await followSwitches(bus,log);
(globalThis as any).gc?.(); const m0=process.memoryUsage();
const hostBus=await connectBus({url,name:"h",log});
const scanBus=await connectBus({url,name:"s",log}); const host=new StationHost({bus:hostBus,scanBus,log,hostId:"h1",switches,settings:readStationsSettings({DEVICE_SILENCE_MS:"600000"})});
t=Date.now(); await host.start(); console.log("started",Date.now()-t);
const lat:number[]=[]; const until=Date.now()+8000; let k=0;
while(Date.now()<until){ const a=performance.now(); k=(k+7919)%N; await askStation(bus.nc,k+1,{commandId:"acq:"+k,actor:{kind:"cashier",id:7,name:"A"},command:{type:"lease_acquire",lifetimeMs:3600000}}); lat.push(performance.now()-a); }
const first=lat.slice(); lat.sort((a,b)=>a-b); console.log("commands during scan",lat.length,"p50",lat[lat.length>>1]!.toFixed(1),"p99",lat[Math.floor(lat.length*.99)]!.toFixed(1),"max",lat.at(-1)!.toFixed(1),"resident",host.residentStates());
(globalThis as any).gc?.(); const m1=process.memoryUsage(); console.log("heap per station", ((m1.heapUsed-m0.heapUsed)/N).toFixed(0),"B; rss MB",(m1.rss/1e6).toFixed(0), "heap MB", (m1.heapUsed/1e6).toFixed(0), (m0.heapUsed/1e6).toFixed(0));
await host.stop(); await hostBus.close(); await scanBus.close(); await bus.jsm.streams.purge("STATION_LOG"); await bus.jsm.streams.purge("LIVENESS"); await bus.close();
