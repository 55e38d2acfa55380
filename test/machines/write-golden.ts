/**
 * Writes the golden commits of the current machine version: `node test/machines/write-golden.ts`.
 *
 * How to change what is committed: raise MACHINE_VERSION in machines/station/commit.ts, and let `decodeCommit` read the
 * version before it as well. Then run this program and `npm run format`. It never overwrites a folder that exists: commits
 * of that version are in the logs of installations.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { encodeCommit, MACHINE_VERSION } from "../../machines/station/commit.ts";
import { commitOf, STORIES } from "./golden-stories.ts";
import { goldenFolder, WORDS } from "./golden-words.ts";

const folder = goldenFolder(MACHINE_VERSION);
if (existsSync(folder)) {
  process.stderr.write(
    `The golden commits of machine version ${MACHINE_VERSION} exist; a new shape is a new version.\n`,
  );
  process.exitCode = 1;
} else {
  mkdirSync(folder, { recursive: true });
  for (const [name, story] of Object.entries(STORIES)) {
    writeFileSync(`${folder}/${name}.json`, `${encodeCommit(commitOf(story))}\n`);
  }
  writeFileSync(`${folder}/words.json`, `${JSON.stringify(WORDS, null, 2)}\n`);
}
