/** A loss counts when the leader of a stream says so again and again: one that was just elected may lag for a moment. */
import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import { describe, expect, it } from "vitest";
import { checkStream } from "../../services/relay/recovery/check-streams.ts";

const CREATED = "2026-11-22T10:00:00Z";
const known = {
  mark: { stream: "LOG", created: CREATED, sequence: 9, stored: "2026-11-22T11:00:00Z" },
  notedSequence: 9,
};
const infoAt = (sequence: number) =>
  ({
    config: { name: "LOG" },
    created: CREATED,
    state: { last_seq: sequence, last_ts: sequence === 9 ? "2026-11-22T11:00:00Z" : "2026-11-22T10:30:00Z" },
  }) as unknown as StreamInfo;

/** A leader whose state is at these sequences, one after the other; the last one stays. */
function leaderAt(...sequences: number[]): { jsm: JetStreamManager; asked: () => number } {
  let asked = 0;
  const info = async () => infoAt(sequences[Math.min(asked++, sequences.length - 1)] ?? 0);
  return { jsm: { streams: { info } } as unknown as JetStreamManager, asked: () => asked };
}

describe("a leader whose stream ends before what was known", () => {
  it("it has applied the rest a moment later: nothing is lost, and the newest state counts", async () => {
    const { jsm } = leaderAt(9);
    const { info, isLost } = await checkStream(jsm, infoAt(7), known);
    expect({ isLost, sequence: info.state.last_seq }).toEqual({ isLost: false, sequence: 9 });
  });

  it("it says so three times: the end is lost", async () => {
    const { jsm, asked } = leaderAt(7);
    expect((await checkStream(jsm, infoAt(7), known)).isLost).toBe(true);
    expect(asked()).toBe(2);
  });

  it("the stream is empty and nothing was known of it: it is new, and nothing is asked again", async () => {
    const { jsm, asked } = leaderAt(0);
    expect((await checkStream(jsm, infoAt(0), { mark: undefined, notedSequence: 0 })).isLost).toBe(true);
    expect(asked()).toBe(0);
  });
});
