/** The look-up of a target at the test's name server. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Sender } from "../../../services/webhook-signer/http/send-result.ts";
import { type NameServer, startNameServer, type Zone } from "../../support/name-server.ts";
import { caFile, removeFolder, senderWith } from "./raw-target.ts";

let names: NameServer;
let sender: Sender;

beforeAll(async () => {
  names = await startNameServer();
  sender = senderWith({ dnsServers: [names.address], ownNetworks: ["9.9.9.0/24"] });
});
afterAll(async () => {
  await sender.close();
  await names.close();
  removeFolder();
});

/** A zone in which every name has these addresses. */
const having =
  (ipv4: readonly string[], ipv6: readonly string[] = [], alias?: string): Zone =>
  (_name, kind) => ({ addresses: kind === "A" ? ipv4 : ipv6, ...(alias === undefined ? {} : { alias }) });

const check = async (zone: Zone, url = "https://hooks.example.com/") => {
  names.answerWith(zone);
  const checked = await sender.check(url, { loopback: "refused" });
  if (checked.ok) return "ok";
  return checked.error === "target_refused" ? checked.reason : checked.error;
};

const many = (count: number): string[] => Array.from({ length: count }, (_, at) => `8.8.4.${at}`);

describe("a host", () => {
  test.each<[string, Zone, string]>([
    ["public in A", having(["8.8.8.8"]), "ok"],
    ["public in AAAA alone", having([], ["2606:4700::1111"]), "ok"],
    ["public in both", having(["8.8.8.8", "8.8.4.4"], ["2606:4700::1111"]), "ok"],
    ["public below an alias", having(["8.8.8.8"], [], "edge.example.net"), "ok"],
    ["with 32 addresses", having(many(31), ["2606:4700::1111"]), "ok"],
    ["private", having(["10.0.0.1"]), "host_not_public"],
    ["private below an alias", having(["169.254.169.254"], [], "edge.example.net"), "host_not_public"],
    ["with one private address among public ones", having(["8.8.8.8", "192.168.0.1", "8.8.4.4"]), "host_not_public"],
    ["private in AAAA alone", having(["8.8.8.8"], ["fd00:ec2::254"]), "host_not_public"],
    ["private in A alone", having(["127.0.0.1"], ["2606:4700::1111"]), "host_not_public"],
    ["that is this machine", having(["127.0.0.1"], ["::1"]), "host_not_public"],
    ["that maps to a private address", having([], ["::ffff:a00:1"]), "host_not_public"],
    ["in our own network", having(["9.9.9.7"]), "host_not_public"],
    ["with 33 addresses", having(many(32), ["2606:4700::1111"]), "too_many_addresses"],
    ["without an address", having([]), "dns_failed"],
    ["with nothing but an alias", having([], [], "edge.example.net"), "dns_failed"],
    ["that does not exist", () => ({ code: "no_such_name" }), "dns_failed"],
    ["whose name server fails", () => ({ code: "server_failure" }), "dns_failed"],
    [
      "of which one look-up fails",
      (_name, kind) => (kind === "A" ? { addresses: ["8.8.8.8"] } : { code: "server_failure" }),
      "dns_failed",
    ],
    [
      "private, of which one look-up fails",
      (_name, kind) => (kind === "A" ? { addresses: ["10.0.0.1"] } : { code: "server_failure" }),
      "host_not_public",
    ],
  ])("%s", async (_what, zone, verdict) => {
    expect(await check(zone)).toBe(verdict);
  });

  test("an address or this machine's name: not resolved", async () => {
    const before = names.questions.length;
    expect(await check(having([]), "https://8.8.8.8/")).toBe("ok");
    expect(await sender.check("http://localhost:1/", { loopback: "allowed" })).toMatchObject({ ok: true });
    expect(names.questions.length).toBe(before);
  });

  test("loopback by DNS: refused also where loopback is allowed", async () => {
    names.answerWith(having(["127.0.0.1"]));
    const checked = await sender.check("https://hooks.example.com/", { loopback: "allowed" });
    expect(checked).toMatchObject({ ok: false, reason: "host_not_public" });
  });

  test("public at registration and private at delivery: refused at delivery, without a detail", async () => {
    expect(await check(having(["8.8.8.8"]))).toBe("ok");
    names.answerWith(having(["10.0.0.1"]));
    const request = { url: "https://hooks.example.com/", headers: {}, body: "{}", loopback: "refused" } as const;
    expect(await sender.send(request)).toEqual({
      error: "target_refused",
      address: null,
      dnsMs: null,
      connectMs: null,
      tlsMs: null,
      firstByteMs: null,
      totalMs: null,
      status: null,
      responseBody: "",
      truncated: false,
      retryAfterMs: null,
    });
  });

  test("a silent name server: fails after two seconds", async () => {
    const startedAt = performance.now();
    expect(await check(() => "silence")).toBe("dns_failed");
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeGreaterThan(1_500);
    expect(tookMs).toBeLessThan(2_600);
  });

  test("an abort by the caller: the check rejects with the caller's reason", async () => {
    names.answerWith(() => "silence");
    const gone = new Error("gone");
    const controller = new AbortController();
    setTimeout(() => controller.abort(gone), 50);
    const checking = sender.check("https://hooks.example.com/", { loopback: "refused", signal: controller.signal });
    await expect(checking).rejects.toBe(gone);
  });
});

test.each([
  [{ dnsServers: ["somewhere"] }, "WEBHOOK_DNS_SERVERS"],
  [{ caFile: `${caFile()}.missing` }, "WEBHOOK_CA_FILE"],
  [{ ownNetworks: ["10.0.0.0/8", "x/8"] }, "WEBHOOK_OWN_NETWORKS"],
])("settings that cannot be read are named: %o", (settings, name) => {
  expect(() => senderWith(settings)).toThrow(expect.objectContaining({ code: "invalid_setting" }));
  expect(() => senderWith(settings)).toThrow(name);
});
