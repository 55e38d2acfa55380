import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { findNatsServer, type NatsBinary } from "../../deploy/embedded/find-nats-server.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const folders: TemporaryFolder[] = [];

afterEach(() => {
  for (const made of folders.splice(0)) made.remove();
});

function folder(): string {
  const made = temporaryFolder("find");
  folders.push(made);
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

/** Searches on a machine that has nothing but what is named here. */
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
  test("NATS_SERVER_BIN, then PATH, then the system's folders, then the cache", async () => {
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

  test("one below 2.12 on PATH, or a folder of that name: passed over", async () => {
    const [old, confusing, good] = [folder(), folder(), folder()];
    natsServer(join(old, "nats-server"), "2.11.9");
    mkdirSync(join(confusing, "nats-server"));
    const path = natsServer(join(good, "nats-server"), "2.12.0");
    expect(pathOf(await find({ path: [old, confusing, good].join(delimiter) }))).toBe(path);
  });

  test("a named one that is too old or no nats-server at all: refused with one sentence", async () => {
    const old = natsServer(join(folder(), "nats-server"), "2.9.10");
    expect(await find({ named: old })).toBe(
      `nats-server 2.12.0 or newer is needed, and NATS_SERVER_BIN names ${old}, which is 2.9.10: name a newer one, or unset it.`,
    );
    expect(await find({ named: "/bin/true" })).toBe(
      "NATS_SERVER_BIN names /bin/true, which is not a nats-server that runs here.",
    );
    expect(await find({ named: "/nowhere/nats" })).toMatch(/is not a nats-server that runs here/);
  });

  test("none, and nothing to fetch it with: one sentence with the three ways", async () => {
    const sentence = await find({});
    expect(sentence).toMatch(
      /^No nats-server 2\.12\.0 or newer was found \(this system has no apt-get to fetch it with\): /,
    );
    for (const way of ["github.com/nats-io/nats-server/releases", "NATS_SERVER_BIN", "NATS_URL"]) {
      expect(sentence).toContain(way);
    }
  });

  test("only one that is too old, and nothing to fetch another with: the sentence names it", async () => {
    const old = natsServer(join(folder(), "nats-server"), "2.9.10");
    expect(await find({ path: join(old, "..") })).toContain(`to fetch it with, and ${old} is 2.9.10): put a release`);
  });
});
