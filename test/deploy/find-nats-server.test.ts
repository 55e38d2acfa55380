import { chmodSync, chownSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { findNatsServer, type NatsBinary } from "../../deploy/embedded/find-nats-server.ts";
import { onlyWhere } from "../support/only-where.ts";
import { runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folders: (() => void)[] = [];

afterEach(() => {
  for (const remove of folders.splice(0)) remove();
});

function folder(): string {
  const made = temporaryFolder("find");
  folders.push(made.remove);
  return made.path;
}

/** A program that answers `--version` as nats-server does, which is all that finding it needs. */
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

/** Looks for nats-server on a machine that has nothing but what is given. */
async function find(machine: Machine): Promise<NatsBinary | string> {
  const environment: NodeJS.ProcessEnv = {
    PATH: machine.path ?? folder(),
    DEVICE_PAYMENTS_CACHE_DIR: machine.cache ?? folder(),
    ...(machine.named === undefined ? {} : { NATS_SERVER_BIN: machine.named }),
  };
  const search = { environment, checkout: folder(), say: () => undefined, systemFolders: machine.systemFolders ?? [] };
  return await findNatsServer(search).catch((error: Error) => error.message);
}

const pathOf = (found: NatsBinary | string) => (typeof found === "string" ? found : found.path);

describe("finding nats-server", () => {
  test("NATS_SERVER_BIN, then PATH, then the system's folders, then the cache", async () => {
    const [named, onPath, inSystem, cache] = [folder(), folder(), folder(), folder()];
    const chosen = natsServer(join(named, "my-nats"), "2.11.0");
    const first = natsServer(join(onPath, "nats-server"), "2.10.7");
    const second = natsServer(join(inSystem, "nats-server"), "2.12.0");
    const third = natsServer(join(cache, "nats-server", "root", "usr", "sbin", "nats-server"), "2.9.10");
    expect(await find({ named: chosen, path: onPath, systemFolders: [inSystem], cache })).toEqual({
      path: chosen,
      version: "2.11.0",
    });
    expect(pathOf(await find({ path: `${folder()}${delimiter}${onPath}`, systemFolders: [inSystem], cache }))).toBe(
      first,
    );
    expect(pathOf(await find({ systemFolders: [inSystem], cache }))).toBe(second);
    expect(pathOf(await find({ cache }))).toBe(third);
  });

  test("passes over one that is too old, and over a folder of that name", async () => {
    const [old, confusing, good] = [folder(), folder(), folder()];
    natsServer(join(old, "nats-server"), "2.9.9");
    mkdirSync(join(confusing, "nats-server"));
    const path = natsServer(join(good, "nats-server"), "2.10.0");
    expect(pathOf(await find({ path: [old, confusing, good].join(delimiter) }))).toBe(path);
  });

  test("refuses with one sentence a named one that is too old or no nats-server at all", async () => {
    const old = natsServer(join(folder(), "nats-server"), "2.9.9");
    expect(await find({ named: old })).toMatch(
      /^nats-server 2\.9\.10 or newer is needed, and \S+ is 2\.9\.9: .*NATS_URL.*\.$/,
    );
    expect(await find({ named: "/bin/true" })).toBe(
      "NATS_SERVER_BIN names /bin/true, which is not a nats-server that runs here.",
    );
    expect(await find({ named: "/nowhere/nats" })).toMatch(/is not a nats-server that runs here/);
  });

  test("names the three ways in one sentence when there is none and nothing to fetch it with", async () => {
    const said = await find({});
    expect(said).toMatch(/^No nats-server was found \(this system has no apt-get to fetch it with\): /);
    for (const way of ["apt install nats-server", "github.com/nats-io/nats-server/releases", "NATS_URL"]) {
      expect(said).toContain(way);
    }
  });
});

const hasApt = ["/usr/bin/apt-get", "/usr/bin/dpkg-deb"].every(existsSync);

describe.runIf(onlyWhere(hasApt, "fetching the nats-server package with apt-get"))(
  "fetching the package of Debian or Ubuntu",
  () => {
    const search = join(import.meta.dirname, "programs", "find-nats-server.ts");

    /** Debian keeps nats-server in /usr/sbin, so with this PATH an installed one is out of sight. */
    const PATH = "/usr/bin:/bin";

    test("without root, into the cache, once", { timeout: 120_000 }, async () => {
      const cache = folder();
      const isRoot = process.getuid?.() === 0;
      const account = isRoot ? { uid: 65_534, gid: 65_534 } : {};
      if (isRoot) chownSync(cache, 65_534, 65_534);
      const env = { PATH, HOME: "/nonexistent", DEVICE_PAYMENTS_CACHE_DIR: cache };
      const first = runProgram(process.execPath, [search], { env, cwd: "/", ...account });
      await first.ended;
      expect(first.output()).toMatch(/^Fetching nats-server .*\nfound \S+nats-server \d+\.\d+\.\d+\n$/);
      expect(first.output()).toContain(cache);

      const second = runProgram(process.execPath, [search], { env, cwd: "/", ...account });
      await second.ended;
      expect(second.output()).toBe(first.output().split("\n").slice(1).join("\n"));
    });

    test("on a machine without package lists, as fresh containers are", { timeout: 180_000 }, async () => {
      const cache = folder();
      const emptyLists = folder();
      mkdirSync(join(emptyLists, "partial"));
      const settings = join(emptyLists, "apt.conf");
      writeFileSync(settings, `Dir::State::Lists "${emptyLists}";\n`);
      const env = { PATH, APT_CONFIG: settings, DEVICE_PAYMENTS_CACHE_DIR: cache };
      const program = runProgram(process.execPath, [search], { env, cwd: "/" });
      await program.ended;
      expect(program.output()).toMatch(/found \S+nats-server \d+\.\d+\.\d+\n$/);
      expect(program.output()).toContain(cache);
    });
  },
);
