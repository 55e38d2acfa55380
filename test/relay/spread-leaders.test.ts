/** Which leader moves next, so that leaders are spread over the servers. `test/cluster/trial.test.ts` has the moves themselves. */
import { describe, expect, it } from "vitest";
import { type LedStream, type Move, nextMove } from "../../services/relay/spread-leaders.ts";

const SERVERS = ["n0", "n1", "n2"];
const ledBy = (...leaders: string[]): LedStream[] =>
  leaders.map((leader, index) => ({ stream: `LOG_${index}`, leader, servers: SERVERS }));
const after = (streams: readonly LedStream[], move: Move): LedStream[] =>
  streams.map((one) => (one.stream === move.stream ? { ...one, leader: move.to } : one));

describe("the next move of a leader", () => {
  it.each([
    ["each server leads two logs", ["n0", "n1", "n2", "n0", "n1", "n2"]],
    ["one log more than servers", ["n0", "n1", "n2", "n0"]],
    ["fewer logs than servers", ["n1", "n0"]],
    ["one log", ["n2"]],
    ["no log", []],
  ])("%s: none", (_, leaders) => {
    expect(nextMove(ledBy(...leaders))).toBeUndefined();
  });

  it("a server is back and leads nothing: it gets one from the server that leads most", () => {
    const move = nextMove(ledBy("n0", "n1", "n0", "n0", "n1", "n0"));
    expect(move).toEqual({ stream: "LOG_0", from: "n0", to: "n2" });
  });

  it("one move after another: two logs at each server, and no log moves twice", () => {
    let streams = ledBy("n0", "n0", "n0", "n0", "n0", "n0");
    const moved: string[] = [];
    for (let move = nextMove(streams); move !== undefined; move = nextMove(streams)) {
      moved.push(move.stream);
      streams = after(streams, move);
    }
    const counts = Map.groupBy(streams, ({ leader }) => leader);
    expect(SERVERS.map((server) => counts.get(server)?.length)).toEqual([2, 2, 2]);
    expect(new Set(moved).size).toBe(moved.length);
  });

  it("the server that leads least has no copy of a stream: another stream moves", () => {
    const [first, ...others] = ledBy("n0", "n0", "n0");
    const streams = [{ ...first, servers: ["n0", "n1"] } as LedStream, ...others].map((one, index) =>
      index === 2 ? { ...one, leader: "n1" } : one,
    );
    expect(nextMove(streams)).toEqual({ stream: "LOG_1", from: "n0", to: "n2" });
  });
});
