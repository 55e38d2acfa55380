/** The file with the session of a run, which lets a later run end the session when this one is killed. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { LeftRuns } from "../../clients/conformance/left-runs.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

afterEach(() => vi.restoreAllMocks());

function newFolder(): string {
  const folder = temporaryFolder("left-runs");
  onTestFinished(folder.remove);
  return folder.path;
}
const leftRunsIn = (dataDir: string) => new LeftRuns({ DATA_DIR: dataDir }, 7, "http://127.0.0.1:9");

test("a run that has ended: its file is removed", () => {
  const dataDir = join(newFolder(), "data");
  const runs = leftRunsIn(dataDir);
  runs.remember("t");
  expect(readdirSync(dataDir)).toHaveLength(1);
  runs.forget();
  expect(readdirSync(dataDir)).toEqual([]);
});

test("a folder that cannot be written, as in the image: the run continues, and prints the reason once", async () => {
  const errors = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const file = join(newFolder(), "file");
  writeFileSync(file, "");
  // No folder can be made below a file.
  const runs = leftRunsIn(join(file, "data"));
  runs.remember("t");
  await runs.end();
  runs.forget();
  expect(errors.mock.calls).toEqual([
    [expect.stringMatching(/^This run cannot store its session in \S+ \(ENOTDIR\), .* set DATA_DIR to [^\n]*\.\n$/)],
  ]);
});
