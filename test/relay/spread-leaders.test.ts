/** Which leaders move, so that all servers lead. `test/cluster/trial.test.ts` tests the moves in a cluster. */
import { describe, expect, it } from "vitest";
import { type LedStream, moveFromCut, movesToSpread } from "../../services/relay/spread-leaders.ts";

const SERVERS = ["n0", "n1", "n2"];
const ledBy = (...leaders: string[]): LedStream[] =>
  leaders.map((leader, index) => ({ stream: `LOG_${index}`, leader, servers: SERVERS }));
describe("the moves of leaders", () => {
  it.each([
    ["each server leads two logs", ["n0", "n1", "n2", "n0", "n1", "n2"]],
    ["one log more than servers", ["n0", "n1", "n2", "n0"]],
    ["fewer logs than servers", ["n1", "n0"]],
    ["one log", ["n2"]],
    ["no log", []],
  ])("%s: no moves", (_, leaders) => {
    expect(movesToSpread(ledBy(...leaders))).toEqual([]);
  });

  it("a server leads nothing: it gets its share from the server that leads most", () => {
    expect(movesToSpread(ledBy("n0", "n1", "n0", "n0", "n1", "n0"))).toEqual([
      { stream: "LOG_0", from: "n0", to: "n2" },
      { stream: "LOG_2", from: "n0", to: "n2" },
    ]);
  });

  it("one server leads all six logs: each server leads two, and no log moves twice", () => {
    const moves = movesToSpread(ledBy("n0", "n0", "n0", "n0", "n0", "n0"));
    expect(new Set(moves.map(({ stream }) => stream)).size).toBe(4);
    expect(moves.map(({ to }) => to).toSorted()).toEqual(["n1", "n1", "n2", "n2"]);
  });

  it("the server that leads least has no copy of a stream: another stream moves", () => {
    const [first, ...others] = ledBy("n0", "n0", "n0");
    const streams = [{ ...first, servers: ["n0", "n1"] } as LedStream, ...others].map((one, index) =>
      index === 2 ? { ...one, leader: "n1" } : one,
    );
    expect(movesToSpread(streams)).toEqual([{ stream: "LOG_1", from: "n0", to: "n2" }]);
  });
});

describe("the move from a server that is cut off from another one", () => {
  const led = { stream: "LOG_0", leader: "n0", servers: SERVERS };

  it.each([
    ["the leader is one of the two: the third leads", led, ["n0", "n1"], { stream: "LOG_0", from: "n0", to: "n2" }],
    ["the third server leads already: no move", { ...led, leader: "n2" }, ["n0", "n1"], undefined],
    ["no other server has a copy: no move", { ...led, servers: ["n0", "n1"] }, ["n0", "n1"], undefined],
    ["nothing is cut off: no move", led, [], undefined],
  ])("%s", (_, stream, cutOff, move) => {
    expect(moveFromCut(stream, new Set(cutOff))).toEqual(move);
  });
});
