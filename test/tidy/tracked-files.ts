/** Every file that is, or is about to be, in the repository, with its text. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { SourceFile } from "./source-file.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export function trackedFiles(): readonly SourceFile[] {
  const list = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], { cwd: ROOT });
  const paths = list.toString("utf8").split("\0");
  return paths
    .filter((path) => path !== "" && existsSync(`${ROOT}/${path}`))
    .map((path) => ({ path, text: readFileSync(`${ROOT}/${path}`, "utf8") }));
}
