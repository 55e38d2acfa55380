/** Who may do what to an order. The organization is checked by each query; here is the permission. */
import type { Actor } from "../../machines/actor.ts";
import type { Caller } from "../bus/messages/caller.ts";
import { RefusedError } from "../bus/refusals.ts";

/** Whoever collects payments reads and writes orders. Throws `permission_denied`. */
export function requireCollector(caller: Caller): void {
  if (!caller.permissions.includes("payments.collect")) throw new RefusedError({ code: "permission_denied" });
}

/** The caller as the station log names them. */
export function actorOf(caller: Caller): Actor {
  return caller.role === "owner"
    ? { kind: "owner", id: caller.userId }
    : { kind: "cashier", id: caller.userId, name: caller.name };
}
