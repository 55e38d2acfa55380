/**
 * Runs in a separate network, where this machine answers for public and private addresses without having them (but for
 * 8.8.8.9 and 2606:4700::9, which it has). With `ipv6` as its argument it uses the IPv6 addresses. Prints the results
 * of a few deliveries as one line of JSON.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer as createTcpServer, isIPv6 } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { startNameServer, type Zone } from "../../../support/name-server.ts";
import { authority, OK, removeFolder, senderWith } from "../raw-target.ts";

const certificate = authority.issue({ names: ["hooks.example.com"] });
const reached: string[] = [];
const target = createTlsServer(certificate, (socket) => {
  reached.push(socket.localAddress ?? "");
  socket.on("data", (chunk) => void (chunk.toString().endsWith("{}") && socket.write(OK))).on("error", () => undefined);
});
const inside = createTcpServer((socket) => {
  reached.push(socket.localAddress ?? "");
  socket.destroy();
});
const isIpv6 = process.argv[2] === "ipv6";
const listening = isIpv6
  ? ([
      // Linux lets a program listen at an IPv6 address only where the machine has it, but at all of them in any case.
      [target, { port: 443, host: "::", ipv6Only: true }],
      [inside, { port: 8_443, host: "::", ipv6Only: true }],
    ] as const)
  : ([
      [target, { port: 443, host: "8.8.8.8" }],
      [inside, { port: 443, host: "10.0.0.1" }],
    ] as const);
for (const [server, where] of listening) {
  server.listen(where);
  await once(server, "listening");
}

const names = await startNameServer();
interface Sending {
  readonly times?: number;
  readonly url?: string;
  /** Called after the first request. */
  readonly between?: () => void;
}
const OWN_ADDRESSES_MS = 100;

async function send(zone: Zone, { times = 1, url = "https://hooks.example.com/", between }: Sending = {}) {
  const sender = senderWith({ dnsServers: [names.address], times: { ownAddressesMs: OWN_ADDRESSES_MS } });
  reached.length = 0;
  const asked = names.questions.length;
  names.answerWith(zone);
  const results = [];
  for (let turn = 0; turn < times; turn += 1) {
    results.push(await sender.send({ url, headers: {}, body: "{}", loopback: "refused" }));
    if (turn > 0) continue;
    between?.();
    await new Promise((go) => setTimeout(go, 2 * OWN_ADDRESSES_MS));
  }
  await sender.close();
  return { results, reached: [...reached], questions: names.questions.length - asked };
}
const at =
  (...addresses: string[]): Zone =>
  (_name, kind) => ({ addresses: addresses.filter((one) => isIPv6(one) === (kind === "AAAA")) });
/** Gives the machine this address. */
const own = (address: string) => (): void =>
  void execFileSync("ip", ["address", "add", `${address}/${isIPv6(address) ? 128 : 32}`, "dev", "lo"]);

const ofIpv4 = async () => ({
  public: await send(at("8.8.8.8"), { times: 3 }),
  // A name server that answers the first look-up with a public address and a later one with a private address.
  flipped: await send((_name, kind) => ({
    addresses:
      kind === "AAAA"
        ? []
        : [names.questions.filter((each) => each.startsWith("A ")).length === 2 ? "8.8.8.8" : "10.0.0.1"],
  })),
  private: await send(at("10.0.0.1")),
  secondAddress: await send(at("8.8.8.10", "8.8.8.8")),
  own: await send(at("8.8.8.9")),
  // The last one, because the machine keeps the address.
  ownSince: await send(at("8.8.8.8"), { times: 2, between: own("8.8.8.8") }),
});
const ofIpv6 = async () => ({
  public: await send(at("2606:4700::1111"), { times: 2 }),
  literal: await send(at(), { url: "https://[2606:4700::1111]/" }),
  private: await send(at("fd00::1"), { url: "https://hooks.example.com:8443/" }),
  privateBeside: await send(at("8.8.8.8", "fd00::1"), { url: "https://hooks.example.com:8443/" }),
  privateLiteral: await send(at(), { url: "https://[fd00::1]:8443/" }),
  // No server listens at the IPv4 address.
  secondAddress: await send(at("8.8.8.10", "2606:4700::1111")),
  own: await send(at("2606:4700::9")),
  ownSince: await send(at("2606:4700::1111"), { times: 2, between: own("2606:4700::1111") }),
});
const outcome = await (isIpv6 ? ofIpv6() : ofIpv4());
process.stdout.write(`${JSON.stringify(outcome)}\n`);
target.close();
inside.close();
await names.close();
removeFolder();
