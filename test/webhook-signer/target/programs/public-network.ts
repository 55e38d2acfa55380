/**
 * Runs in a network of its own, where this machine answers for public and private addresses without having them (but for
 * 8.8.8.9, which it has). Prints what came of a few deliveries as one line of JSON.
 */
import { once } from "node:events";
import { createServer as createTcpServer } from "node:net";
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
for (const [server, host] of [
  [target, "8.8.8.8"],
  [inside, "10.0.0.1"],
] as const) {
  server.listen(443, host);
  await once(server, "listening");
}

const names = await startNameServer();
async function send(zone: Zone, times = 1) {
  const sender = senderWith({ dnsServers: [names.address] });
  reached.length = 0;
  const asked = names.questions.length;
  names.answerWith(zone);
  const results = [];
  for (let turn = 0; turn < times; turn += 1) {
    const request = { url: "https://hooks.example.com/", headers: {}, body: "{}", loopback: "refused" } as const;
    results.push(await sender.send(request));
  }
  await sender.close();
  return { results, reached: [...reached], questions: names.questions.length - asked };
}
const at =
  (...addresses: string[]): Zone =>
  (_name, kind) => ({ addresses: kind === "A" ? addresses : [] });

const outcome = {
  public: await send(at("8.8.8.8"), 3),
  // A name server that gives a public address to whoever checks and a private one to whoever asks again.
  flipped: await send((_name, kind) => ({
    addresses:
      kind === "AAAA"
        ? []
        : [names.questions.filter((each) => each.startsWith("A ")).length === 2 ? "8.8.8.8" : "10.0.0.1"],
  })),
  asked: names.questions.filter((each) => each.startsWith("A ")).length,
  private: await send(at("10.0.0.1")),
  secondAddress: await send(at("8.8.8.10", "8.8.8.8")),
  own: await send(at("8.8.8.9")),
};
process.stdout.write(`${JSON.stringify(outcome)}\n`);
target.close();
inside.close();
await names.close();
removeFolder();
