/** A DNS server on loopback (RFC 1035, UDP). A test sets its answer to each question. */
import { createSocket, type RemoteInfo } from "node:dgram";
import { isIPv4 } from "node:net";

export interface Answer {
  /** A canonical name (CNAME). The records belong to it, as when a name server has followed the alias. */
  readonly alias?: string;
  readonly addresses?: readonly string[];
  readonly code?: "ok" | "server_failure" | "no_such_name";
}

/** Answers a question. `count` is how often it was asked. For `silence` the server sends no answer. */
export type Zone = (name: string, kind: "A" | "AAAA", count: number) => Answer | "silence";

export interface NameServer {
  /** `127.0.0.1:port`. */
  readonly address: string;
  /** The questions so far, for example `A hooks.example.com`. */
  readonly questions: readonly string[];
  answerWith(zone: Zone): void;
  close(): Promise<void>;
}

const CODES = { ok: 0, server_failure: 2, no_such_name: 3 } as const;
const KINDS = new Map<number, "A" | "AAAA">([
  [1, "A"],
  [28, "AAAA"],
]);

export async function startNameServer(): Promise<NameServer> {
  let zone: Zone = () => ({ code: "no_such_name" });
  const questions: string[] = [];
  const socket = createSocket("udp4");
  socket.on("message", (message: Buffer, from: RemoteInfo) => {
    const { name, type, end } = questionOf(message);
    const kind = KINDS.get(type);
    if (kind === undefined) return;
    const label = `${kind} ${name}`;
    questions.push(label);
    const answer = zone(name, kind, questions.filter((each) => each === label).length);
    if (answer === "silence") return;
    socket.send(answerTo(message.subarray(0, end), type, answer), from.port, from.address);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once("error", reject).bind(0, "127.0.0.1", resolve);
  await promise;
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    answerWith(next) {
      zone = next;
    },
    close: () => new Promise((closed) => void socket.close(closed)),
  };
}

function questionOf(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

function answerTo(question: Buffer, type: number, { alias, addresses = [], code = "ok" }: Answer): Buffer {
  const head = Buffer.from(question.subarray(0, 12));
  // The head is a response with recursion available. The rest is that of the question.
  head.writeUInt16BE(0x8180 | CODES[code], 2);
  head.writeUInt16BE(addresses.length + (alias === undefined ? 0 : 1), 6);
  head.writeUInt32BE(0, 8);
  // A pointer to the question's name, unless the records belong to another name.
  const asked = Buffer.from([0xc0, 12]);
  const owner = alias === undefined ? asked : encoded(alias);
  const records = addresses.map((address) => record(owner, type, bytesOf(address)));
  if (alias !== undefined) records.unshift(record(asked, 5, encoded(alias)));
  return Buffer.concat([head, question.subarray(12), ...records]);
}

function record(owner: Buffer, type: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(0, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([owner, fixed, data]);
}

const encoded = (name: string): Buffer =>
  Buffer.concat([
    ...name.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.from([0]),
  ]);

/** An IPv6 address may not end in an IPv4 address. */
function bytesOf(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  const [front = "", back = ""] = address.split("::");
  const groups = (text: string): number[] =>
    text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
  const [first, last] = [groups(front), groups(back)];
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}
