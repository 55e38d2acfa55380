import { connectBus } from "/work/main/services/bus/connection.ts";
import { headers } from "nats";
import { createLog } from "/work/main/services/runtime/log.ts";
const log = createLog({service:"try", level:"warn"});
const bus = await connectBus({url:"nats://127.0.0.1:14222", name:"try", log});
const body = new TextEncoder().encode("y".repeat(2500));
const N=20000;
async function run(name: string, conc: number, one:(subject:string, seq:number)=>Promise<number>) {
  await bus.jsm.streams.purge("STATION_LOG");
  const seqs = new Array(conc).fill(0); let i=0; const t=performance.now(); const c0=process.cpuUsage(); const lat:number[]=[];
  await Promise.all(seqs.map(async (_,k)=>{ while(i<N){ i++; const a=performance.now(); seqs[k]=await one("station.log.00."+k, seqs[k]); lat.push(performance.now()-a);} }));
  const dt=performance.now()-t; const c=process.cpuUsage(c0); lat.sort((a,b)=>a-b);
  console.log(name, conc, Math.round(N/dt*1000)+"/s", "cpu us/op", ((c.user+c.system)/N).toFixed(0), "p50", lat[N>>1]!.toFixed(2));
}
const viaJs=async (s:string,q:number)=> (await bus.js.publish(s, body, {expect:{lastSubjectSequence:q}})).seq;
const viaReq=async (s:string,q:number)=>{ const h=headers(); h.set("Nats-Expected-Last-Subject-Sequence", String(q)); const m=await bus.nc.request(s, body,{headers:h, timeout:2000}); const r=m.json<any>(); if(r.error) throw new Error(r.error.description); return r.seq; };
// own mux
const inbox="_INBOX.own"+Math.random().toString(36).slice(2);
const pend=new Map<string,(m:any)=>void>(); let tok=0;
bus.nc.subscribe(inbox+".*",{callback:(_e,m)=>{const t=m.subject.slice(inbox.length+1); const f=pend.get(t); pend.delete(t); f?.(m);}});
const enc=new TextEncoder();
const viaOwn=(s:string,q:number)=>new Promise<number>((res,rej)=>{ const t=String(++tok); pend.set(t,(m)=>{const r=JSON.parse(Buffer.from(m.data).toString()); r.error?rej(r.error):res(r.seq)});
  const hdr={encode:()=>enc.encode(`NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: ${q}\r\n\r\n`)} as any;
  bus.nc.publish(s,body,{reply:inbox+"."+t,headers:hdr}); });
for (const c of [1,64,256]) { await run("js.publish",c,viaJs); await run("request",c,viaReq); await run("own",c,viaOwn); }
await bus.jsm.streams.purge("STATION_LOG");
await bus.close();
