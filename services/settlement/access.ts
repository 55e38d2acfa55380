/**
 * Who may do what to an order, and where. The organization is checked by each query; here are the permission and the
 * station's standing. The station's lease is not asked for: it guards collections, and a waiter may write orders while a
 * cashier collects.
 */
import type { Actor } from "../../machines/actor.ts";
import type { StationStatus } from "../../machines/standing.ts";
import type { Caller } from "../bus/messages/caller.ts";
import { RefusedError } from "../bus/refusals.ts";

/** Whoever collects payments reads and writes orders. Throws `permission_denied`. */
export function requireCollector(caller: Caller): void {
  if (!caller.permissions.includes("payments.collect")) throw new RefusedError({ code: "permission_denied" });
}

/** Owners read orders as well. Throws `permission_denied`. */
export function requireReader({ permissions }: Caller): void {
  if (permissions.includes("payments.collect") || permissions.includes("organization.manage")) return;
  throw new RefusedError({ code: "permission_denied" });
}

/** The caller as the station log names them. */
export function actorOf(caller: Caller): Actor {
  return caller.role === "owner"
    ? { kind: "owner", id: caller.userId }
    : { kind: "cashier", id: caller.userId, name: caller.name };
}

/** Throws `station_suspended` or `station_closed`: there, nothing new is sold. */
export function requireOpenStation({ status }: { readonly status: StationStatus }): void {
  if (status === "suspended") throw new RefusedError({ code: "station_suspended" });
  if (status === "closed") throw new RefusedError({ code: "station_closed" });
}
