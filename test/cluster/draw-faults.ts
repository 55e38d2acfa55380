/** Draws the faults of a trial as cards are drawn from decks. The seed decides the order. */
import type { Random } from "../chaos/random.ts";
import type { Kind } from "./cluster-world.ts";
import { type Draw, OF_SERVERS, ofProcesses } from "./faults.ts";
import { RARE } from "./rare-faults.ts";

/** The decks of each target; the draws take turns between them. */
export const TARGETS = {
  servers: () => [OF_SERVERS],
  processes: (kinds: readonly Kind[]) => [ofProcesses(kinds)],
  rare: () => [RARE],
  all: (kinds: readonly Kind[]) => [OF_SERVERS, ofProcesses(kinds)],
} as const;
export type Targets = keyof typeof TARGETS;

/**
 * Draws this number of faults; the faults of processes are for these kinds of processes. Each fault of a deck is drawn once
 * before one is drawn again.
 */
export function drawFaults(
  count: number,
  random: Random,
  { targets, kinds }: { readonly targets: Targets; readonly kinds: readonly Kind[] },
): readonly Draw[] {
  const decks = TARGETS[targets](kinds).map((draws) => deck(draws, random));
  return Array.from({ length: count }, (_, index) => (decks[index % decks.length] as () => Draw)());
}

function deck(draws: readonly Draw[], random: Random): () => Draw {
  let left: Draw[] = [];
  return () => {
    if (left.length === 0) left = random.shuffled(draws);
    return left.pop() as Draw;
  };
}
