/** A station's lease as the owner sees it, and its end by the owner. A foreign station is `not_found`. */

import { sessionCommandId } from "../../http/command-id.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import { stationLeaseWire } from "../cashier/lease-wire.ts";

export const getOwnStationLease: SessionHandler = async (context) => {
  const { caller, deps } = context;
  return ok(stationLeaseWire(await ownStation(context), { userId: caller.userId, nowMs: deps.nowMs() }));
};

/** The cashier is notified over the live view; the station's events name both. A free station answers alike. */
export const breakOwnStationLease: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { stationId } = await ownStation(context);
  const { reply } = await deps.bus.command(stationId, {
    commandId: sessionCommandId(context, "lease_break", stationId),
    actor: { kind: "owner", id: caller.userId, name: caller.name },
    command: { type: "lease_break" },
  });
  if (reply.type !== "lease") throw new Error(`A station answered lease_break with ${reply.type}.`);
  return ok(stationLeaseWire(reply, { userId: caller.userId, nowMs: deps.nowMs() }));
};
