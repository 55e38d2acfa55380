import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { headers } from "nats";
import { connectBus } from "./services/bus/connection.ts";
import { ensureStreams } from "./services/bus/ensure-streams.ts";
import { askStation } from "./services/bus/station-client.ts";
import { stationLogSubject } from "./services/bus/subjects.ts";
import { createLog } from "./services/runtime/log.ts";
const log = createLog({service:"try", level:"warn"});
const url=process.env.NATS ?? "nats://127.0.0.1:14222"; const natsPid=process.env.NATSPID ?? "";
const bus = await connectBus({url, name:"try", log}); await ensureStreams(bus,{replicas:1});
await bus.jsm.streams.purge("STATION_LOG");
const prof = process.env.PROF ? ["--cpu-prof","--cpu-prof-dir=/tmp/st/prof"] : [];
const child = spawn(process.execPath, [...prof, ".hostproc.ts"], { env:{...process.env, NATS_URL:url, LOG_LEVEL:"warn"}, stdio:["ignore","inherit","inherit","ipc"] });
await new Promise<void>((res)=>child.on("message",()=>res()));
const cpuOf=(pid:number|string)=>{ try { const f=readFileSync(`/proc/${pid}/stat`,"utf8").split(") ")[1]!.split(" "); return (Number(f[11])+Number(f[12]))*10; } catch { return 0; } };
const reg={kind:"registry",id:0} as const; const cash={kind:"cashier",id:7,name:"Ana"} as const; const dev=(id:number)=>({kind:"device",id} as const);
const CONC=Number(process.env.CONC??64); const SEC=Number(process.env.SEC??6);
for (let i=1;i<=CONC;i++) {
  await askStation(bus.nc,i,{commandId:"s"+i,actor:reg,command:{type:"station_put",stationId:i,station:{organizationId:1,filialId:1,name:"Bar",currency:"EUR",status:"active",revision:1}}});
  await askStation(bus.nc,i,{commandId:"l"+i,actor:cash,command:{type:"lease_acquire"}});
}
async function run(name:string, conc:number, one:(k:number)=>Promise<void>) {
  const lat:number[]=[]; let n=0; const end=performance.now()+SEC*1000; const t=performance.now(); const c0=process.cpuUsage(); const h0=cpuOf(child.pid!), n0=cpuOf(natsPid);
  await Promise.all(Array.from({length:conc},async(_,k)=>{ while(performance.now()<end){ const a=performance.now(); await one(k+1); lat.push(performance.now()-a); n++; } }));
  const dt=performance.now()-t; const c=process.cpuUsage(c0); lat.sort((a,b)=>a-b);
  console.log(name.padEnd(14),"conc",conc, Math.round(n/dt*1000)+"/s","p50",lat[n>>1]!.toFixed(2),"p99",lat[Math.floor(n*0.99)]!.toFixed(2),"cpu us/op: client",((c.user+c.system)/n).toFixed(0),"host",((cpuOf(child.pid!)-h0)*1000/n).toFixed(0),"nats",((cpuOf(natsPid)-n0)*1000/n).toFixed(0));
}
const last=await bus.jsm.streams.getMessage("STATION_LOG",{last_by_subj:stationLogSubject(1)}); 
let rev=new Array(CONC+1).fill(1); let id=0;
const cmd=async(k:number)=>{ rev[k]++; const r=await askStation(bus.nc,k,{commandId:"o"+(++id),actor:reg,command:{type:"order_put",order:{orderId:k,orderDisplayNumber:1,amountMinor:String(1000+rev[k]),currency:"EUR",status:"open",revision:rev[k]}}}); if(!r.reply.ok) throw new Error(JSON.stringify(r)); };
const cmd2=async(k:number)=>{ const r=await askStation(bus.nc,k,{commandId:"acq"+(++id),actor:cash,command:{type:"lease_acquire"}}); if(!r.reply.ok) throw new Error(JSON.stringify(r)); };
await run("order_put warm",CONC,cmd);
for(let i=0;i<20;i++) await cmd2(1);
const m=await bus.jsm.streams.getMessage("STATION_LOG",{last_by_subj:stationLogSubject(1)}); const body=m!.data; console.log("commit bytes",body.length);
const seqs=new Array(CONC+1).fill(0);
const bare=async(k:number)=>{ const h=headers(); h.set("Nats-Expected-Last-Subject-Sequence",String(seqs[k])); const r=(await bus.nc.request("station.log.zz."+(1e6+k),body,{headers:h,timeout:2000})).json<any>(); if(r.error) throw new Error(r.error.description); seqs[k]=r.seq; };
for (let round=0; round<Number(process.env.ROUNDS??2); round++) {
  await run("bare",CONC,bare);
  await run("order_put",CONC,cmd);
  await run("lease_acquire",CONC,cmd2);
  await run("bare 1",1,bare);
  await run("order_put 1",1,cmd);
}
child.kill("SIGTERM"); await new Promise(r=>child.on("exit",r));
await bus.jsm.streams.purge("STATION_LOG"); await bus.close();
