/** Ways to break the service, each with the check that must notice it. */
import { BROKEN_COLLECTIONS } from "./broken-collections.ts";
import { BROKEN_ENTRANCES } from "./broken-entrances.ts";
import { BROKEN_RULES } from "./broken-rules.ts";
import type { BrokenService } from "./broken-service.ts";
import { BROKEN_TRUTHS } from "./broken-truths.ts";

export const BROKEN_SERVICES: readonly BrokenService[] = [
  ...BROKEN_ENTRANCES,
  ...BROKEN_COLLECTIONS,
  ...BROKEN_TRUTHS,
  ...BROKEN_RULES,
];
