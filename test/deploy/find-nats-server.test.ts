/**
 * Which nats-server is used, and how it is fetched: from an archive of this test, also from one that is changed in transit,
 * and in the long form of `npm run soak` from Debian's real archive (NATS_SERVER_FROM=debian), whose lists have 70,000
 * packages. A run of the tests on a machine without a nats-server fetches it from there, too.
 */

import { execFile } from "node:child_process";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, test } from "vitest";
import { debianKeyring, debianMirrors } from "../../deploy/embedded/apt.ts";
import {
  cachedNatsServer,
  fetchNatsServer,
  findNatsServer,
  type NatsBinary,
} from "../../deploy/embedded/find-nats-server.ts";
import { onlyWhere } from "../support/only-where.ts";
import { runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const undo: (() => void)[] = [];

afterEach(() => {
  for (const step of undo.splice(0).toReversed()) step();
});

function folder(): string {
  const made = temporaryFolder("nats-server");
  undo.push(made.remove);
  return made.path;
}

/** Writes a program that answers `--version` as nats-server does. The search needs nothing else. */
function natsServer(path: string, version: string): string {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, `#!/bin/sh\necho 'nats-server: v${version}'\n`);
  chmodSync(path, 0o755);
  return path;
}

interface Machine {
  /** Content of PATH. */
  path?: string;
  systemFolders?: string[];
  named?: string;
  cache?: string;
}

/** Searches on a machine that has only the parts named here. */
async function find(machine: Machine): Promise<NatsBinary | string> {
  const environment: NodeJS.ProcessEnv = {
    PATH: machine.path ?? folder(),
    DEVICE_PAYMENTS_CACHE_DIR: machine.cache ?? folder(),
    ...(machine.named === undefined ? {} : { NATS_SERVER_BIN: machine.named }),
  };
  const search = {
    environment,
    checkout: folder(),
    print: () => undefined,
    systemFolders: machine.systemFolders ?? [],
  };
  return await findNatsServer(search).catch((error: Error) => error.message);
}

const pathOf = (found: NatsBinary | string) => (typeof found === "string" ? found : found.path);

describe("the nats-server that is used", () => {
  test("the search: NATS_SERVER_BIN, then PATH, then the system's folders, then the cache", async () => {
    const [named, onPath, inSystem, cache] = [folder(), folder(), folder(), folder()];
    const chosen = natsServer(join(named, "my-nats"), "2.12.0");
    const first = natsServer(join(onPath, "nats-server"), "2.12.7");
    const second = natsServer(join(inSystem, "nats-server"), "3.0.0");
    const third = natsServer(join(cache, "nats-server", "nats-server"), "2.15.1");
    expect(await find({ named: chosen, path: onPath, systemFolders: [inSystem], cache })).toEqual({
      path: chosen,
      version: "2.12.0",
    });
    expect(pathOf(await find({ path: `${folder()}${delimiter}${onPath}`, systemFolders: [inSystem], cache }))).toBe(
      first,
    );
    expect(pathOf(await find({ systemFolders: [inSystem], cache }))).toBe(second);
    expect(pathOf(await find({ cache }))).toBe(third);
  });

  test("a server below 2.12 on PATH, or a folder of that name: the search passes over it", async () => {
    const [old, confusing, good] = [folder(), folder(), folder()];
    natsServer(join(old, "nats-server"), "2.11.9");
    mkdirSync(join(confusing, "nats-server"));
    const path = natsServer(join(good, "nats-server"), "2.12.0");
    expect(pathOf(await find({ path: [old, confusing, good].join(delimiter) }))).toBe(path);
  });

  test("a named program that is too old or no nats-server: it is refused with one sentence", async () => {
    const old = natsServer(join(folder(), "nats-server"), "2.9.10");
    expect(await find({ named: old })).toBe(
      `nats-server 2.12.0 or newer is needed, and NATS_SERVER_BIN names ${old}, which is 2.9.10: name a newer one, or unset it.`,
    );
    expect(await find({ named: "/bin/true" })).toBe(
      "NATS_SERVER_BIN names /bin/true, which is not a nats-server that runs here: name another one, or unset it.",
    );
    expect(await find({ named: "/nowhere/nats" })).toMatch(/is not a nats-server that runs here/);
  });

  test("no server, and no way to fetch it: one sentence has the three ways to get one", async () => {
    const sentence = await find({});
    expect(sentence).toMatch(
      /^No nats-server 2\.12\.0 or newer was found \(this system has no apt-get to fetch it with\): /,
    );
    for (const way of ["github.com/nats-io/nats-server/releases", "NATS_SERVER_BIN", "NATS_URL"]) {
      expect(sentence).toContain(way);
    }
  });

  test("only a server that is too old, and no way to fetch another: the sentence names it", async () => {
    const old = natsServer(join(folder(), "nats-server"), "2.9.10");
    expect(await find({ path: join(old, "..") })).toContain(`to fetch it with, and ${old} is 2.9.10): put a release`);
  });
});

const FILES = join(import.meta.dirname, "archive");

/** Copies a file of the archive to a path without blanks: apt needs that for a keyring, and the checkout's path may have some. */
function copyOf(name: string): string {
  const copy = join(folder(), name);
  cpSync(join(FILES, name), copy);
  return copy;
}

type Tamper = (path: string, content: Buffer) => Buffer | undefined;

/** A mirror on loopback that serves the archive beside this file. `tamper` may change or omit each file. */
async function mirror(tamper: Tamper = (_path, content) => content): Promise<string> {
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    const file = join(FILES, basename(path));
    const content = existsSync(file) ? tamper(path, readFileSync(file)) : undefined;
    response.writeHead(content === undefined ? 404 : 200);
    response.end(content);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  undo.push(() => server.close());
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The mirror listens on no port.");
  return `http://127.0.0.1:${address.port}/debian`;
}

const ENVIRONMENT = { PATH: "/usr/bin:/bin" };

interface Fetched {
  reason: string | undefined;
  /** The content of the cache afterwards. */
  program: string | undefined;
}

async function fetchFrom(
  mirrors: string[],
  keyring = copyOf("keyring.asc"),
  env: NodeJS.ProcessEnv = ENVIRONMENT,
): Promise<Fetched> {
  const cacheDir = folder();
  const keyrings = [keyring];
  const failure = await fetchNatsServer({ cacheDir, environment: env, print: () => undefined, mirrors, keyrings });
  const program = cachedNatsServer(cacheDir);
  return { reason: failure?.reason, program: existsSync(program) ? readFileSync(program, "utf8") : undefined };
}

const flipped = (content: Buffer): Buffer => {
  const copy = Buffer.from(content);
  const place = Math.floor(copy.length / 2);
  copy.writeUInt8(copy.readUInt8(place) ^ 1, place);
  return copy;
};

const REFUSED = { program: undefined };

const hasApt = ["/usr/bin/apt-get", "/usr/bin/dpkg-deb"].every(existsSync);

describe.runIf(onlyWhere(hasApt, "fetching the nats-server package with apt-get"))("fetching nats-server", () => {
  test("an archive that the keyring's key has signed: the program is in the cache", async () => {
    expect(await fetchFrom([await mirror()])).toEqual({
      reason: undefined,
      program: expect.stringContaining("nats-server: v2.15.1"),
    });
  });

  test("a keyring without the archive's key: the package is refused", async () => {
    const fetched = await fetchFrom([await mirror()], copyOf("other-keyring.asc"));
    expect(fetched).toMatchObject(REFUSED);
    expect(fetched.reason).toMatch(/^Debian's package could not be fetched: .*forky InRelease.*[^.]$/);
  });

  test("no keyring: the sentence names the package that holds it", async () => {
    const fetched = await fetchFrom([await mirror()], "/nowhere/keyring.gpg");
    expect(fetched).toMatchObject(REFUSED);
    expect(fetched.reason).toMatch(/no keys of Debian's archive .* debian-archive-keyring/);
  });

  test.each([
    [
      "a signed list with one changed character",
      "InRelease",
      (content: Buffer) => Buffer.from(content.toString().replace("Codename: forky", "Codename: forkz")),
    ],
    [
      "a list without its signature",
      "InRelease",
      (content: Buffer) => Buffer.from(/^Origin[^]*?(?=-----BEGIN PGP SIG)/m.exec(content.toString())?.[0] ?? ""),
    ],
    ["a package list with one changed bit", "Packages", flipped],
    ["a package with one changed bit", "nats-server.deb", flipped],
  ])("%s: the package is refused", async (_what, file, change) => {
    const tampered = await mirror((path, content) => (basename(path) === file ? change(content) : content));
    const fetched = await fetchFrom([tampered]);
    expect(fetched).toMatchObject(REFUSED);
    expect(fetched.reason).toMatch(/^Debian's package could not be fetched: \S/);
  });

  test("a mirror without the suite: the next one is tried", async () => {
    const without = await mirror(() => undefined);
    expect(await fetchFrom([without, await mirror()])).toMatchObject({ reason: undefined });
  });

  test("apt settings of the machine that switch off all checks: a changed list is still refused", async () => {
    const settings = join(folder(), "apt.conf");
    writeFileSync(settings, 'Acquire::AllowInsecureRepositories "true";\nAPT::Get::AllowUnauthenticated "true";\n');
    const tampered = await mirror((path, content) => (basename(path) === "InRelease" ? flipped(content) : content));
    const fetched = await fetchFrom([tampered], undefined, { ...ENVIRONMENT, APT_CONFIG: settings });
    expect(fetched).toMatchObject(REFUSED);
    expect(fetched.reason).toMatch(/could not be fetched/);
  });

  test("the mirrors: those with Debian's lists or paths come first, and the public one last", async () => {
    const described = (await mirror()).replace(/debian$/, "described");
    const sources = join(folder(), "sources.list");
    const lists = folder();
    mkdirSync(join(lists, "partial"));
    writeFileSync(
      sources,
      [
        `deb [signed-by=${copyOf("keyring.asc")}] ${described} forky main`,
        "deb http://mirror.example/debian bookworm main",
        "deb http://mirror.example/debian-security bookworm-security main",
        "deb http://archive.example/ubuntu noble universe",
      ].join("\n"),
    );
    const settings = join(folder(), "apt.conf");
    const ours = `Dir::Etc::SourceList "${sources}";\nDir::Etc::SourceParts "/dev/null";\nDir::State::Lists "${lists}";\n`;
    writeFileSync(settings, ours);
    const env = { ...ENVIRONMENT, APT_CONFIG: settings };
    const byPath = ["http://mirror.example/debian", "http://deb.debian.org/debian"];
    expect(await debianMirrors(env)).toEqual(byPath);
    // Only the first mirror can be reached, so only its lists are there afterwards.
    const update = ["-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=0", "update"];
    await promisify(execFile)("apt-get", update, { env }).catch(() => undefined);
    expect(await debianMirrors(env)).toEqual([described, ...byPath]);
  });

  test("a cache folder that cannot be made: one sentence names its setting, before anything is fetched", async () => {
    const search = join(import.meta.dirname, "programs", "find-nats-server.ts");
    const temporary = folder();
    const env = { ...ENVIRONMENT, TMPDIR: temporary, DEVICE_PAYMENTS_CACHE_DIR: "/proc/cache" };
    const program = runProgram(process.execPath, [search], { env, cwd: "/" });
    undo.push(() => program.process.kill("SIGKILL"));
    expect(await program.ended).toBe(1);
    expect(program.output()).toMatch(
      /^No nats-server \S+ or newer was found \(Debian's package cannot be kept in \/proc\/cache\/nats-server: there is no such file or folder \(ENOENT\)\): .*, or set DEVICE_PAYMENTS_CACHE_DIR to a folder that can be written\.\n$/,
    );
    expect(readdirSync(temporary)).toEqual([]);
  });

  test("without root and without the machine's lists: the program is in the cache, fetched once", {
    timeout: 120_000,
  }, async () => {
    const search = join(import.meta.dirname, "programs", "find-nats-server.ts");
    const cache = folder();
    const isRoot = process.getuid?.() === 0;
    const account = isRoot ? { uid: 65_534, gid: 65_534 } : {};
    if (isRoot) chownSync(cache, 65_534, 65_534);
    const keyring = copyOf("keyring.asc");
    chmodSync(dirname(keyring), 0o755);
    const isReal = process.env["NATS_SERVER_FROM"] === "debian";
    if (isReal) expect(debianKeyring()).toBeDefined();
    const archive = isReal ? {} : { MIRROR: await mirror(), KEYRING: keyring };
    // Debian installs nats-server in /usr/sbin, so with this PATH an installed one is not found.
    const env = { ...ENVIRONMENT, HOME: "/nonexistent", DEVICE_PAYMENTS_CACHE_DIR: cache, ...archive };
    const first = runProgram(process.execPath, [search], { env, cwd: "/", ...account });
    await first.ended;
    expect(first.output()).toMatch(/^Fetching nats-server .*\nfound \S+nats-server 2\.\d+\.\d+\n$/);
    expect(first.output()).toContain(cache);

    const second = runProgram(process.execPath, [search], { env, cwd: "/", ...account });
    await second.ended;
    expect(second.output()).toBe(first.output().split("\n").slice(1).join("\n"));
  });
});
