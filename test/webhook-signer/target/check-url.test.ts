/** The address of a target as its owner writes it, and as it is parsed. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkTargetUrl,
  TARGET_REFUSAL_SENTENCES,
  TARGET_REFUSALS,
} from "../../../services/webhook-signer/target/check-url.ts";
import { REFUSED_URLS } from "./refused-targets.ts";

const reasonOf = (raw: string, loopback: "refused" | "allowed" = "refused"): string => {
  const checked = checkTargetUrl(raw, { loopback });
  return checked.ok ? "ok" : checked.reason;
};

const ALLOWED = [
  "https://hooks.example.com",
  "https://hooks.example.com/",
  "https://HOOKS.example.com/A?b=c%20d",
  "https://hooks.example.com:443/",
  "https://hooks.example.com:8443/x",
  "https://8.8.8.8/",
  "https://[2606:4700::1111]:8443/",
  "https://xn--bcher-kva.example.com/",
  "https://a_b.example.com/",
  "https://hooks.example.com/@someone",
  "https://hooks.example.com/?to=a@b",
  "https://localhost.example.com/",
  `https://hooks.example.com/${"a".repeat(2_048 - 26)}`,
];

describe("a target's address", () => {
  test.each(
    Object.entries(REFUSED_URLS).flatMap(([reason, raws]) =>
      raws.map((raw) => ({ raw, reason, title: JSON.stringify(raw).slice(0, 60) })),
    ),
  )("is refused, as $reason: $title", ({ raw, reason }) => {
    expect(reasonOf(raw)).toBe(reason);
  });

  test.each(ALLOWED.map((raw) => ({ raw, title: raw.slice(0, 60) })))("is accepted: $title", ({ raw }) => {
    expect(reasonOf(raw)).toBe("ok");
  });

  test("the refused addresses: each possible reason occurs and has a sentence", () => {
    expect([...Object.keys(REFUSED_URLS), "too_many_addresses"].toSorted()).toEqual([...TARGET_REFUSALS].toSorted());
    for (const reason of TARGET_REFUSALS) expect(TARGET_REFUSAL_SENTENCES[reason]).toMatch(/^[A-Z].+\.$/);
  });

  test("an accepted address has the host that is written in it", () => {
    const part = fc.string({ unit: fc.constantFrom(...Array.from("https:/\\@#?.-_%[]0127f x\tä。①localhost")) });
    fc.assert(
      fc.property(
        fc.oneof(
          part,
          part.map((text) => `https://${text}`),
        ),
        (raw) => {
          const checked = checkTargetUrl(raw, { loopback: "refused" });
          if (!checked.ok) return;
          expect(raw.toLowerCase().startsWith(`https://${checked.url.hostname}`)).toBe(true);
        },
      ),
      { numRuns: 20_000 },
    );
  });
});

describe("a target's address when loopback is allowed", () => {
  test.each([
    "http://localhost:4000/hook",
    "https://localhost:1/",
    "http://127.0.0.1/",
    "http://127.0.0.1:80/",
    "https://127.9.9.9:9/",
    "http://[::1]:4000/",
    "http://a.localhost:4000/",
  ])("%s is accepted", (raw) => {
    expect(reasonOf(raw, "allowed")).toBe("ok");
  });

  test.each([
    ["http://hooks.example.com/", "not_https"],
    ["http://10.0.0.1/", "not_https"],
    ["https://10.0.0.1/", "host_not_public"],
    ["https://169.254.169.254/", "host_not_public"],
    ["https://0.0.0.0/", "host_not_public"],
    ["https://[::ffff:127.0.0.1]/", "host_not_public"],
    ["https://hooks.example.com:4000/", "port_not_allowed"],
    ["ws://localhost:4000/", "not_https"],
    ["http://u@localhost:4000/", "credentials_in_url"],
    ["http://localhost:4000/#x", "fragment"],
    ["http://127.1:4000/", "not_canonical"],
  ])("%s is still refused, as %s", (raw, reason) => {
    expect(reasonOf(raw, "allowed")).toBe(reason);
  });
});
