/** Which faults a trial has: so many of a deck, in an order that the seed decides. */
import type { Random } from "../chaos/random.ts";
import { type Draw, OF_PROCESSES, OF_SERVERS } from "./faults.ts";
import { RARE } from "./rare-faults.ts";

export const TARGETS = {
  servers: [OF_SERVERS],
  processes: [OF_PROCESSES],
  rare: [RARE],
  all: [OF_SERVERS, OF_PROCESSES],
} as const;
export type Targets = keyof typeof TARGETS;

/** So many faults, in an order that the seed decides: each kind of both halves comes up before one is repeated. */
export function drawFaults(count: number, random: Random, targets: Targets): readonly Draw[] {
  const decks = TARGETS[targets].map((draws) => deck(draws, random));
  return Array.from({ length: count }, (_, index) => (decks[index % decks.length] as () => Draw)());
}

function deck(draws: readonly Draw[], random: Random): () => Draw {
  let left: Draw[] = [];
  return () => {
    if (left.length === 0) left = random.shuffled(draws);
    return left.pop() as Draw;
  };
}
