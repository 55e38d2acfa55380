import type { authenticateConsumer } from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import type { RoboticsDeps } from "../deps.ts";
import { findActiveByCredential } from "../sql/consumers.ts";
import { callerOnWire } from "./consumer-wire.ts";

/** Looked up each time, because a credential is verified on every read: a reset and a suspension hold from their commit on. */
export async function authenticate(
  { database, figures }: Pick<RoboticsDeps, "database" | "figures">,
  { credentialHash }: RequestOf<typeof authenticateConsumer>,
): Promise<ReplyOf<typeof authenticateConsumer>> {
  const row = await findActiveByCredential(database, Buffer.from(credentialHash, "hex"));
  figures.credentialChecks.add({ result: row === undefined ? "unknown" : "known" });
  return { consumer: row === undefined ? null : callerOnWire(row) };
}
