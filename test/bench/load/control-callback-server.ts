/**
 * The control of the callback bench: a bare uWebSockets.js handler that verifies the signature over the raw body and
 * inserts one row into the same PostgreSQL, each in a separate transaction with the same durability. It knows no
 * config, payment, duplicate or throttle.
 */

import { App } from "uWebSockets.js";
import { createHmac, timingSafeEqual } from "node:crypto";
import postgres from "postgres";
import { PROVIDER_LIMITS } from "../../../services/providers/limits.ts";

const [secret = "", port = ""] = process.argv.slice(2);
const sql = postgres(process.env["DATABASE_URL"] ?? "", { max: PROVIDER_LIMITS.databaseConnections });
await sql`
  create table control_callbacks (
    callback_id bigint generated always as identity primary key,
    body bytea not null,
    received_at timestamptz not null default clock_timestamp()
  )`;

function isSigned(header: string, body: Buffer): boolean {
  const [, timestamp = "", given = ""] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header) ?? [];
  const expected = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest();
  return given !== "" && timingSafeEqual(expected, Buffer.from(given, "hex"));
}

App()
  .post("/callback/", (res, req) => {
    const header = req.getHeader("x-provider-signature");
    let isAborted = false;
    res.onAborted(() => {
      isAborted = true;
    });
    let received = Buffer.alloc(0);
    res.onData((chunk, isLast) => {
      received = Buffer.concat([received, Buffer.from(chunk)]);
      if (isLast) void answer(received);
    });
    const answer = async (body: Buffer): Promise<void> => {
      const row = isSigned(header, body)
        ? (await sql`insert into control_callbacks (body) values (${body}) returning callback_id`)[0]
        : undefined;
      if (isAborted) return;
      res.cork(() => {
        res.writeStatus(row === undefined ? "401 Unauthorized" : "200 OK");
        res.writeHeader("content-type", "application/json");
        res.end(`{"received":${row !== undefined},"callback_id":${String(row?.["callback_id"] ?? 0)}}`);
      });
    };
  })
  .listen("127.0.0.1", Number(port), (socket) => {
    process.send?.({ ready: socket !== false });
  });
process.on("disconnect", () => process.exit(0));
