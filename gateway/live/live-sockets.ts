/**
 * All live sockets of one gateway. Each gets the newest state of its station when it opens, on each change, and when a
 * deadline in the last message passes.
 *
 *   commit, kill switch, poll note ──► dirty ──► once per turn: one decoded state per station, one message per socket
 *   every 200 ms ──► session ended ────────────────────────────► the socket is ended
 *                    replica stale, or session or station lost ─► `stale`, never an old state
 *                    deadline passed, or clock set back ───────► dirty
 *                    nothing sent for 3 s ─────────────────────► `current`: the last state is still correct
 */
import type { StationState } from "../../machines/station/state.ts";
import type { SessionEntry } from "../../services/bus/messages/sessions.ts";
import { every } from "../../services/runtime/every.ts";
import type { Log } from "../../services/runtime/log.ts";
import { liveIdentity, liveJson, liveValidUntilMs } from "../api/cashier/live.ts";
import { ApiError } from "../http/handler-context.ts";
import { toTimestamp } from "../http/shared-schemas.ts";
import type { MissingStations } from "../read-model/missing-stations.ts";
import type { Replicas } from "../read-model/replicas.ts";
import { CLOSE_CODES, LIVE_LIMITS, type LiveSocket } from "./live-socket.ts";

interface LiveSocketsDeps {
  readonly replicas: Replicas;
  readonly missing: Pick<MissingStations, "whyNone">;
  readonly log: Log;
}

export class LiveSockets {
  readonly #replicas: Replicas;
  readonly #missing: LiveSocketsDeps["missing"];
  readonly #log: Log;
  readonly #byStation = new Map<number, Set<LiveSocket>>();
  readonly #countOfSession = new Map<number, number>();
  readonly #stopSweeps: () => void;
  #dirty = new Set<LiveSocket>();
  #count = 0;

  constructor({ replicas, missing, log }: LiveSocketsDeps) {
    this.#replicas = replicas;
    this.#missing = missing;
    this.#log = log;
    const changed = (stationId: number): void => this.#markAll(this.#byStation.get(stationId));
    replicas.stations.onChange(changed);
    replicas.polls.onChange(changed);
    replicas.switches.onChange(() => this.#markEach());
    this.#stopSweeps = every(LIVE_LIMITS.sweepMs, () => this.#sweep(replicas.nowMs()));
  }

  get size(): number {
    return this.#count;
  }

  /** Throws `busy` or `throttled` when there is no room for one more socket of this session. */
  requireRoom(sessionId: number): void {
    if (this.#count >= LIVE_LIMITS.inAll) throw new ApiError("busy");
    if ((this.#countOfSession.get(sessionId) ?? 0) < LIVE_LIMITS.perSession) return;
    throw new ApiError("throttled", { detail: `A session has at most ${LIVE_LIMITS.perSession} live sockets.` });
  }

  add(socket: LiveSocket): void {
    const { stationId, sessionId } = socket.facts;
    const sockets = this.#byStation.get(stationId) ?? new Set();
    sockets.add(socket);
    this.#byStation.set(stationId, sockets);
    this.#countOfSession.set(sessionId, (this.#countOfSession.get(sessionId) ?? 0) + 1);
    this.#count += 1;
    this.mark(socket);
  }

  remove(socket: LiveSocket, code: number): void {
    const { sessionDigest: _, ...facts } = socket.facts;
    const sockets = this.#byStation.get(facts.stationId);
    if (sockets?.delete(socket) !== true) return;
    if (sockets.size === 0) this.#byStation.delete(facts.stationId);
    const left = (this.#countOfSession.get(facts.sessionId) ?? 1) - 1;
    if (left === 0) this.#countOfSession.delete(facts.sessionId);
    else this.#countOfSession.set(facts.sessionId, left);
    this.#count -= 1;
    this.#dirty.delete(socket);
    const durationMs = Math.round(performance.now() - socket.openedAtMs);
    this.#log.info({ ...facts, code, durationMs, messages: socket.sentCount }, "a live socket was closed");
  }

  /** Sends the newest state to this socket at the end of the turn. */
  mark(socket: LiveSocket): void {
    if (this.#dirty.size === 0) setImmediate(() => this.#flush());
    this.#dirty.add(socket);
  }

  /** Ends all sockets. Their clients reconnect to another gateway. */
  stop(): void {
    this.#stopSweeps();
    this.#forEach((socket) => socket.end(CLOSE_CODES.goingAway, "going_away"));
  }

  #markAll(sockets: ReadonlySet<LiveSocket> | undefined): void {
    if (sockets === undefined) return;
    for (const socket of sockets) this.mark(socket);
  }

  #markEach(): void {
    this.#forEach((socket) => this.mark(socket));
  }

  /** Copies the sets first, because ending a socket removes it from them. */
  #forEach(act: (socket: LiveSocket) => void): void {
    for (const socket of [...this.#byStation.values()].flatMap((sockets) => [...sockets])) act(socket);
  }

  /** Whether the replicas that all sockets need are fresh. */
  #isFresh(nowMs: number): boolean {
    const replicas = this.#replicas;
    // A stale replica proves nothing: a session that it lacks may be valid, and a session that it has may have ended.
    return replicas.areSwitchesFresh() && replicas.areSessionsFresh(nowMs);
  }

  #sweep(nowMs: number): void {
    const isFresh = this.#isFresh(nowMs);
    this.#forEach((socket) => {
      if (socket.isUnread(performance.now())) return socket.end(CLOSE_CODES.nothingExpected, "no_pong");
      const isStationFresh = this.#replicas.isStationFresh(socket.facts.stationId, nowMs);
      if (!isFresh || !isStationFresh) return this.#sendStale(socket, nowMs);
      if (this.#sessionOf(socket, nowMs) === undefined) {
        // The bus may have lost a valid session.
        if (!this.#replicas.areSessionsComplete()) return this.#sendStale(socket, nowMs);
        return socket.end(CLOSE_CODES.sessionEnded, "session_invalid");
      }
      const isLost = this.#replicas.stations.cell(socket.facts.stationId) === undefined;
      const isOutdated = nowMs < socket.madeAtMs || nowMs >= socket.validUntilMs;
      if (socket.isSentStale || isLost || isOutdated) this.mark(socket);
      else if (socket.isQuiet(performance.now())) socket.sendCurrent(messageOf("current", nowMs));
    });
  }

  #flush(): void {
    const dirty = this.#dirty;
    this.#dirty = new Set();
    const nowMs = this.#replicas.nowMs();
    if (!this.#isFresh(nowMs)) {
      for (const socket of dirty) this.#sendStale(socket, nowMs);
      return;
    }
    for (const [stationId, sockets] of Map.groupBy(dirty, (socket) => socket.facts.stationId)) {
      if (!this.#replicas.isStationFresh(stationId, nowMs)) {
        for (const socket of sockets) this.#sendStale(socket, nowMs);
        continue;
      }
      const state = this.#replicas.stations.state(stationId);
      for (const socket of sockets) {
        const session = this.#sessionOf(socket, nowMs);
        if (session !== undefined && state !== undefined) this.#sendState(socket, state, nowMs);
        else this.#sendStale(socket, nowMs);
        if (session !== undefined && state === undefined) void this.#endWithoutStation(socket, session);
      }
    }
  }

  #sessionOf({ facts }: LiveSocket, nowMs: number): SessionEntry | undefined {
    return this.#replicas.sessions.findDigest(facts.sessionDigest, nowMs);
  }

  /** Keeps the socket when the bus may have lost a station that exists. The next sweep checks again. */
  async #endWithoutStation(socket: LiveSocket, session: SessionEntry): Promise<void> {
    const why = await this.#missing.whyNone(session, socket.facts.stationId);
    if (why === "not_found") socket.end(CLOSE_CODES.stationGone, "not_found");
  }

  #sendState(socket: LiveSocket, state: StationState, nowMs: number): void {
    if (!socket.maySend()) return;
    const { switches, polls } = this.#replicas;
    const polledAtMs = (deviceId: number): number | null => polls.polledAtMs(deviceId);
    const facts = { switches: switches.current(), polledAtMs, nowMs, userId: socket.facts.userId };
    const view = liveJson(state, facts);
    socket.madeAtMs = nowMs;
    socket.validUntilMs = liveValidUntilMs(state, facts);
    socket.send(JSON.stringify(view), liveIdentity(view), false);
  }

  #sendStale(socket: LiveSocket, nowMs: number): void {
    if (socket.isSentStale || !socket.maySend()) return;
    socket.send(messageOf("stale", nowMs), "stale", true);
  }
}

const messageOf = (type: "current" | "stale", nowMs: number): string =>
  JSON.stringify({ type, server_time: toTimestamp(nowMs) });
