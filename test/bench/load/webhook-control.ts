/**
 * The control of the webhook bench in a separate process: a bare undici loop with the same signing over the same number
 * of connections, without a database, a guard or a record.
 */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { Agent } from "undici";

const [url = "", caFile = "", connectionsText = "", countText = ""] = process.argv.slice(2);
const connections = Number(connectionsText);
const count = Number(countText);
const { origin, pathname: path } = new URL(url);
const secret = "whsec_0123456789012345678901234567890123456789012";
const agent = new Agent({
  connections,
  pipelining: 1,
  allowH2: false,
  connect: { ca: readFileSync(caFile), rejectUnauthorized: true },
});

async function send(id: number): Promise<void> {
  const payload = { task_id: id, display_number: id, leg: "kitchen_to_table", status: "cancelled" };
  const createdAt = new Date().toISOString();
  const body = JSON.stringify({
    delivery_id: id,
    event_type: "serving_task.cancelled",
    created_at: createdAt,
    payload,
  });
  const t = Math.floor(Date.now() / 1_000);
  const v1 = createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex");
  const headers = {
    "Content-Type": "application/json",
    "X-Service-Robotics-Signature": `t=${t},v1=${v1}`,
    "user-agent": "device-payments-webhooks",
    "accept-encoding": "identity",
  };
  const answer = await agent.request({ origin, path, method: "POST", headers, body });
  await answer.body.dump();
  if (answer.statusCode !== 200) throw new Error(`The target answered ${answer.statusCode}.`);
}

async function run(): Promise<number> {
  let next = 0;
  const startedAtMs = performance.now();
  const loop = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      await send(next);
    }
  };
  await Promise.all(Array.from({ length: connections }, loop));
  return performance.now() - startedAtMs;
}

process.on("message", () => {
  void run().then((elapsedMs) => process.send?.({ elapsedMs }));
});
process.on("disconnect", () => process.exit(0));
process.send?.({ ready: true });
