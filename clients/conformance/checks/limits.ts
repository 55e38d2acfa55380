/** Throttles: one request a second for each credential. */
import type { Check } from "../check.ts";
import { hasStatus, holds, isRefused } from "../expect.ts";

export const limitChecks: readonly Check[] = [
  {
    id: "throttle.per_credential",
    capability: "presence",
    after: ["display.idle"],
    quotes: [
      "It behaves exactly like production: same endpoints, throttles, refusal codes and kill switches.",
      "Throttles apply per credential and are the same in sandbox as in production.",
      "A device needing more than one request per second is misbehaving.",
    ],
    async run(world) {
      const hasty = world.display.unpaced();
      const answers = await Promise.all(Array.from({ length: 15 }, () => hasty.send("GET", "me/")));
      const refused = answers.filter(({ status }) => status === 429);
      holds(
        "answers to 15 requests at once",
        refused.length > 0,
        "at least one 429",
        answers.map(({ status }) => status),
      );
      const [first] = refused;
      if (first !== undefined) {
        isRefused(first, 429, "throttled");
        holds(
          "header `Retry-After`",
          Number(first.headers.get("retry-after")) > 0,
          "seconds",
          first.headers.get("retry-after"),
        );
      }
      hasStatus(await world.companion.send("GET", "me/"), 200);
    },
  },
];
