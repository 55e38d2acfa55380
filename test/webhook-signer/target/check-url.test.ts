/** The address of a target as it is written, and as it is read. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkTargetUrl } from "../../../services/webhook-signer/target/check-url.ts";
import { TARGET_REFUSAL_SENTENCES, TARGET_REFUSALS } from "../../../services/webhook-signer/target/refusal.ts";

const reasonOf = (raw: string, loopback: "refused" | "allowed" = "refused"): string => {
  const checked = checkTargetUrl(raw, { loopback });
  return checked.ok ? "ok" : checked.reason;
};

const REFUSED: Readonly<Record<string, readonly string[]>> = {
  not_a_url: [
    "",
    "hooks.example.com",
    "//hooks.example.com/",
    "https://",
    "https://a b.com/",
    "https://[fe80::1%25eth0]/",
    "https://1.2.3.4.5/",
    "https://example.com:99999/",
  ],
  not_https: [
    "http://hooks.example.com/",
    "http://localhost/",
    "ws://hooks.example.com/",
    "wss://hooks.example.com/",
    "file:///etc/passwd",
    "ftp://hooks.example.com/",
    "javascript:alert(1)",
    "data:text/plain,x",
  ],
  credentials_in_url: [
    "https://user@hooks.example.com/",
    "https://user:p@hooks.example.com/",
    "https://:p@hooks.example.com/",
    "https://@hooks.example.com/",
    "https://:@hooks.example.com/",
    "https:@hooks.example.com/",
    "https:\\\\@hooks.example.com/",
    "https://8.8.8.8@127.0.0.1/",
  ],
  fragment: ["https://hooks.example.com/#a", "https://hooks.example.com/#", "https://hooks.example.com#@127.0.0.1/"],
  host_not_public: [
    ...[
      "127.1",
      "2130706433",
      "0x7f000001",
      "0177.0.0.1",
      "0x7f.0.0.0x1",
      "0",
      "127.0.0.1.",
      "１２７.0.0.1",
      "①②⑦.0.0.1",
      "%31%32%37.0.0.1",
      "127.0.\t0.1",
      "127.0.0.1\n",
      "127。0。0。1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "[fe80::1]",
      "169.254.169.254",
      "10.0.0.1:8443",
    ].map((host) => `https://${host}/`),
    "https:127.0.0.1",
    "https:\\\\127.0.0.1",
    "https:/127.0.0.1",
    "HTTPS:///127.0.0.1",
    " https://127.0.0.1/ ",
    "h\nttps://127.0.0.1/",
    ...[
      "localhost",
      "LOCALHOST",
      "localhost.",
      "a.localhost",
      "printer.local",
      "db.internal",
      "metadata.google.internal",
      "nas.home.arpa",
      "router.lan",
      "intranet",
      "com",
      "com.",
      "a..b.com",
      `${"a".repeat(64)}.com`,
    ].map((host) => `https://${host}/`),
  ],
  port_not_allowed: [
    "https://hooks.example.com:80/",
    "https://hooks.example.com:22/",
    "https://hooks.example.com:0/",
    "https://8.8.8.8:8444/",
    "https://hooks.example.com:65535/",
  ],
  not_canonical: [
    "https:hooks.example.com/",
    "https:\\\\hooks.example.com\\",
    "https://hooks.example.com./",
    "https://134744072/",
    "https://8.8.2056/",
    "https://hooks.exam\tple.com/",
    "https://hooks.ex%61mple.com/",
    "https://hooks。example.com/",
    "https://bücher.example.com/",
    "https://hooks.example.com/ü",
    " https://hooks.example.com/",
    "https://hooks.example.com:0443/",
    "https://hooks.example.com:/",
    "https://hooks.example.com/a\\b",
  ],
  too_long: [`https://hooks.example.com/${"a".repeat(2_048)}`, `https://hooks.example.com/${'"'.repeat(1_000)}`],
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
    Object.entries(REFUSED).flatMap(([reason, raws]) =>
      raws.map((raw) => ({ raw, reason, title: JSON.stringify(raw).slice(0, 60) })),
    ),
  )("is refused, as $reason: $title", ({ raw, reason }) => {
    expect(reasonOf(raw)).toBe(reason);
  });

  test.each(ALLOWED.map((raw) => ({ raw, title: raw.slice(0, 60) })))("is taken: $title", ({ raw }) => {
    expect(reasonOf(raw)).toBe("ok");
  });

  test("is refused for each reason that a URL can give, with a sentence for each", () => {
    expect([...Object.keys(REFUSED), "too_many_addresses"].toSorted()).toEqual([...TARGET_REFUSALS].toSorted());
    for (const reason of TARGET_REFUSALS) expect(TARGET_REFUSAL_SENTENCES[reason]).toMatch(/^[A-Z].+\.$/);
  });

  test("that is taken has the host that is written in it", () => {
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

describe("where loopback is allowed", () => {
  test.each([
    "http://localhost:4000/hook",
    "https://localhost:1/",
    "http://127.0.0.1/",
    "http://127.0.0.1:80/",
    "https://127.9.9.9:9/",
    "http://[::1]:4000/",
    "http://a.localhost:4000/",
  ])("%s is taken", (raw) => {
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
