/** A station as its live socket tells it, once: for clients that cannot keep a socket open. */

import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import { liveWire } from "../../live/live-wire.ts";

export const readLiveState: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const state = await ownStation(context);
  const { polledAtMs } = deps;
  return ok(liveWire(state, { switches: deps.switches(), polledAtMs, nowMs: deps.nowMs(), userId: caller.userId }));
};
