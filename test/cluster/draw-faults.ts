/** Draws the faults of a trial from decks, in an order that the seed decides. */
import type { Random } from "../chaos/random.ts";
import type { Kind } from "./cluster-world.ts";
import { type Draw, OF_SERVERS, ofProcesses } from "./faults.ts";
import { RARE } from "./rare-faults.ts";

/** The decks that are drawn from in turn. */
export const TARGETS = {
  servers: () => [OF_SERVERS],
  processes: (kinds: readonly Kind[]) => [ofProcesses(kinds)],
  rare: () => [RARE],
  all: (kinds: readonly Kind[]) => [OF_SERVERS, ofProcesses(kinds)],
} as const;
export type Targets = keyof typeof TARGETS;

/**
 * Draws this number of faults in an order that the seed decides, those of processes for these kinds. Each kind of fault of both
 * halves is drawn before one is repeated.
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
