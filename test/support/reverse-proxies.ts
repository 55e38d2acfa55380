/** Runs the proxies of `deploy/proxies/` as real processes in front of a gateway, each on a separate port, with TLS. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { type Child, startChild } from "../../deploy/child.ts";
import type { Authority } from "./certificates.ts";
import type { DebianProgram } from "./debian-programs.ts";
import { freePort } from "./free-port.ts";

const PROXIES = join(import.meta.dirname, "..", "..", "deploy", "proxies");
const STARTED_WITHIN_MS = 10_000;
const STOP_MS = 5_000;
/** The host name in the published files. The tests' clients resolve it to this machine. */
export const SITE = "pay.example";

export const PROXY_NAMES = ["nginx", "haproxy", "caddy"] as const;
export type ProxyName = (typeof PROXY_NAMES)[number];

export interface ProxyOptions {
  readonly program: DebianProgram;
  readonly upstreamPort: number;
  /** Where the proxy's files are written. */
  readonly folder: string;
  readonly authority: Authority;
  /** Further replacements in the file. Some tests show what happens without one of its lines. */
  readonly replace?: Replacements;
}

export interface ReverseProxy {
  readonly port: number;
  /** `https://pay.example:<port>`; see `SITE`. */
  readonly baseUrl: string;
  stop(): Promise<void>;
}

type Replacements = readonly (readonly [text: string, by: string])[];

/** Returns a published file with other ports and paths. The file must contain each replaced text exactly once. */
function adapted(file: string, replacements: Replacements): string {
  return replacements.reduce(
    (text, [from, to]) => {
      if (text.split(from).length !== 2) throw new Error(`${file} does not contain "${from}" exactly once.`);
      return text.replace(from, () => to);
    },
    readFileSync(join(PROXIES, file), "utf8"),
  );
}

interface Prepared {
  readonly args: string[];
  /** Relative to the folder. */
  readonly files: Readonly<Record<string, string>>;
}

type Prepare = (facts: { readonly folder: string; readonly port: number; readonly options: ProxyOptions }) => Prepared;

const PREPARE: Record<ProxyName, Prepare> = {
  nginx({ folder, port, options }) {
    const site = adapted("nginx.conf", [
      ["127.0.0.1:8480", `127.0.0.1:${options.upstreamPort}`],
      ["listen 443 ssl", `listen 127.0.0.1:${port} ssl`],
      ["/etc/ssl/pay.example.pem", `${folder}/certificate.pem`],
      ["/etc/ssl/private/pay.example.key", `${folder}/key.pem`],
      ...(options.replace ?? []),
    ]);
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    );
    const main = [
      // When root starts nginx, its workers run as another user by default, who may not read this folder.
      userInfo().uid === 0 ? "user root;" : "",
      `daemon off; pid ${folder}/nginx.pid; error_log stderr warn; worker_processes 1;`,
      "events { worker_connections 512; }",
      `http { access_log off; ${temporary.join(" ")} include ${folder}/site.conf; }`,
    ];
    const files = { "nginx.conf": `${main.join("\n")}\n`, "site.conf": site };
    return { args: ["-p", folder, "-e", "stderr", "-c", `${folder}/nginx.conf`], files };
  },
  haproxy({ folder, port, options }) {
    const config = adapted("haproxy.cfg", [
      ["127.0.0.1:8480", `127.0.0.1:${options.upstreamPort}`],
      ["bind :443", `bind 127.0.0.1:${port}`],
      ["/etc/haproxy/pay.example.pem", `${folder}/both.pem`],
      ...(options.replace ?? []),
    ]);
    return { args: ["-db", "-f", `${folder}/haproxy.cfg`], files: { "haproxy.cfg": config } };
  },
  caddy({ folder, port, options }) {
    const config = adapted("Caddyfile", [
      ["127.0.0.1:8480", `127.0.0.1:${options.upstreamPort}`],
      ["{\n\tservers {", "{\n\tadmin off\n\tauto_https disable_redirects\n\tservers {"],
      ["\npay.example {", `\nhttps://${SITE}:${port} {\n\tbind 127.0.0.1`],
      ["/etc/ssl/pay.example.pem", `${folder}/certificate.pem`],
      ["/etc/ssl/private/pay.example.key", `${folder}/key.pem`],
      ...(options.replace ?? []),
    ]);
    return { args: ["run", "--config", `${folder}/Caddyfile`, "--adapter", "caddyfile"], files: { Caddyfile: config } };
  },
};

/** Starts a proxy and waits until it listens. When it does not listen, throws an error with its output. */
export async function startProxy(name: ProxyName, options: ProxyOptions): Promise<ReverseProxy> {
  const port = await freePort();
  const folder = join(options.folder, `${name}-${port}`);
  mkdirSync(folder);
  const { cert, key } = options.authority.issue({ names: [SITE] });
  const { args, files } = PREPARE[name]({ folder, port, options });
  const all = { ...files, "certificate.pem": cert, "key.pem": key, "both.pem": cert + key };
  for (const [file, text] of Object.entries(all)) writeFileSync(join(folder, file), text);
  const child = await startChild({
    command: options.program.path,
    args,
    spawn: {
      cwd: folder,
      env: {
        ...process.env,
        LD_LIBRARY_PATH: options.program.libraries,
        HOME: folder,
        XDG_DATA_HOME: folder,
        XDG_CONFIG_HOME: folder,
      },
    },
    stopSignal: "SIGTERM",
    stopMs: STOP_MS,
    orphanSignal: "TERM",
  });
  if (!(await isListening(child, port))) {
    await child.stop();
    throw new Error(`${name} does not listen: ${child.output.tail()}`);
  }
  return {
    port,
    baseUrl: `https://${SITE}:${port}`,
    async stop() {
      await child.stop();
    },
  };
}

async function isListening(child: Child, port: number): Promise<boolean> {
  const untilMs = performance.now() + STARTED_WITHIN_MS;
  while (child.process.exitCode === null && performance.now() < untilMs) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}
