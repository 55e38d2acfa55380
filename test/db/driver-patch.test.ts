/** A program whose driver lacks the patch in `patches/` does not start. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { runProgram } from "../support/running-program.ts";
import { startNats, type TestServer } from "../support/servers.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
/** A module hook that loads the driver as npm installs it, without the mark of the patch. */
const UNPATCHED = `import { registerHooks } from "node:module";
registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith("/postgres/src/index.js")) return loaded;
    return { ...loaded, source: String(loaded.source).replace("isPatched: true,", "") };
  },
});
`;

const folder = temporaryFolder("unpatched");
let nats: TestServer;
beforeAll(async () => {
  nats = await startNats();
});
afterAll(async () => {
  folder.remove();
  await nats.stop();
});

test.each([["main.ts", "relay"], ["migrate.ts"]])("services/%s: fails in one sentence", async (...args) => {
  const hook = join(folder.path, "unpatched.mjs");
  writeFileSync(hook, UNPATCHED);
  const program = runProgram(
    process.execPath,
    ["--import", pathToFileURL(hook).href, join(CHECKOUT, "services", args[0] ?? ""), ...args.slice(1)],
    {
      env: {
        ...process.env,
        // The process starts from the sources, because a bundle contains the patched driver.
        NODE_OPTIONS: "",
        DATABASE_URL: inject("databaseAdminUrl"),
        NATS_URL: nats.url,
        LOG_LEVEL: "silent",
      },
    },
  );
  expect(await program.ended).toBe(1);
  expect(program.output()).toBe(
    "The package postgres in node_modules lacks the patch in patches/: run `npm ci`, and start again.\n",
  );
});
