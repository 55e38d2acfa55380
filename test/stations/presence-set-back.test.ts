/** The devices of a station after the clock of the bus was ahead and was set back: the station and its host, without servers. */
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { StationCommand } from "../../machines/station/command.ts";
import { LocalCommands } from "../../services/stations/mailboxes.ts";
import { Presence } from "../../services/stations/presence.ts";
import { SYSTEM, type Work } from "../../services/stations/work.ts";
import { aCounter, COMPANION, COMPANION_DEVICE, STATION_ID } from "../machines/scenario.ts";

const SILENCE_MS = 25_000;
const AHEAD_MS = 7_200_000;

/** A host of one counter, whose companion is online and has just sent a heartbeat. */
class Host {
  readonly #counter = aCounter();
  #nowMs = this.#counter.atMs;
  #storedAtMs = this.#nowMs;
  #presence = this.#open();

  setsBack(): this {
    this.#nowMs -= AHEAD_MS;
    return this;
  }

  /** The companion is reset, and enrolls again. */
  resets(): this {
    this.#counter.describesDevice({ ...COMPANION_DEVICE, status: "pending", revision: 2 });
    this.#counter.describesDevice({ ...COMPANION_DEVICE, revision: 3 });
    this.#presence.observe(STATION_ID, this.#counter.station);
    return this;
  }

  /** Another host takes over: it reads the header of the station's commit or, without one, its state. */
  takesOver(reads: "header" | "state" = "header"): this {
    this.#presence.close();
    this.#presence = this.#open(reads);
    return this;
  }

  /** Time passes, in which the companion sends a heartbeat every ten seconds, or none. */
  async passes(ms: number, { beats = false } = {}): Promise<this> {
    for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
      if (beats && passedMs % 10_000 === 0) {
        this.#storedAtMs = this.#nowMs;
        this.#presence.noteHeartbeat(STATION_ID, COMPANION.id, this.#nowMs);
      }
      this.#nowMs += 1_000;
      if (this.#presence.isDue(this.#nowMs)) this.#presence.tick(this.#nowMs);
      await turn();
    }
    return this;
  }

  liveness(): string | undefined {
    return this.#counter.device(COMPANION)?.liveness.state;
  }

  commits(): number {
    return this.#counter.commits.length;
  }

  #open(reads: "header" | "state" = "header"): Presence {
    const presence = new Presence({
      localCommands: new LocalCommands({ submit: (_stationId, work) => this.#perform(work) }),
      deviceSilenceMs: SILENCE_MS,
      clock: { nowMs: () => this.#nowMs },
      storedHeartbeats: { newestAtMs: async () => this.#storedAtMs },
    });
    if (reads === "state") presence.observe(STATION_ID, this.#counter.station);
    else if (this.liveness() === "online") presence.noteOnline(STATION_ID, [COMPANION.id]);
    presence.finishScan();
    presence.noteStoredHeartbeat(STATION_ID, COMPANION.id, this.#storedAtMs);
    presence.detectSilence(true);
    return presence;
  }

  #perform({ command, answer }: Work): void {
    const asked = typeof command === "function" ? command(this.#counter.station, 1) : command;
    // A station's time never goes back.
    this.#counter.atMs = Math.max(this.#counter.atMs, this.#nowMs);
    if (asked !== undefined) this.#counter.send(asked as StationCommand, SYSTEM);
    this.#presence.observe(STATION_ID, this.#counter.station);
    answer({ reply: { ok: true, type: "accepted" }, intent: null, sequence: 1 });
  }
}

describe("the clock of the bus is set back by two hours", () => {
  it.each([
    ["the same host", (host: Host) => host],
    ["a host that takes over", (host: Host) => host.takesOver()],
    ["a host that takes over and reads the state", (host: Host) => host.takesOver("state")],
  ])("%s: a device that sends nothing more is offline after the silence", async (_name, moved) => {
    const host = moved(new Host().setsBack());
    await host.passes(SILENCE_MS - 2_000);
    expect(host.liveness()).toBe("online");
    await host.passes(5_000);
    expect(host.liveness()).toBe("offline");
  });

  it.each([
    ["the same host", (host: Host) => host],
    ["a host that takes over", (host: Host) => host.takesOver()],
  ])("%s: a device that sends heartbeats stays online, and nothing is committed", async (_name, moved) => {
    const host = moved(new Host().setsBack());
    const before = host.commits();
    await host.passes(4 * SILENCE_MS, { beats: true });
    expect([host.liveness(), host.commits()]).toEqual(["online", before]);
  });

  it("a device that was offline is online with its next heartbeat and offline without one, as often as it happens", async () => {
    const host = await new Host().passes(SILENCE_MS + 5_000);
    expect(host.liveness()).toBe("offline");
    host.setsBack();
    for (let time = 0; time < 3; time += 1) {
      await host.passes(10_000, { beats: true });
      expect(host.liveness()).toBe("online");
      await host.passes(SILENCE_MS);
      expect(host.liveness()).toBe("offline");
    }
  });

  it("a device that was reset before: online with its next heartbeat", async () => {
    const host = new Host().resets().setsBack();
    expect(host.liveness()).toBe("offline");
    await host.passes(10_000, { beats: true });
    expect(host.liveness()).toBe("online");
  });

  it("a host that takes over: the heartbeats from before set no device online", async () => {
    const host = await new Host().passes(SILENCE_MS + 5_000);
    await host.setsBack().takesOver().passes(SILENCE_MS);
    expect(host.liveness()).toBe("offline");
  });
});
