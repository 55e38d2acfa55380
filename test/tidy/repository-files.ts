/** Every file that is in the repository, or will be with the next commit, with its text. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { errorCode } from "../../services/runtime/user-error.ts";
import type { SourceFile } from "./source-file.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export function repositoryFiles(): readonly SourceFile[] {
  const list = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], { cwd: ROOT });
  const paths = list.toString("utf8").split("\0");
  return paths.filter((path) => path !== "").flatMap(readFile);
}

/** Returns no file when the file has been removed since the list was made, or when the next commit removes it. */
function readFile(path: string): readonly SourceFile[] {
  try {
    return [{ path, text: readFileSync(`${ROOT}/${path}`, "utf8") }];
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  }
}

/** Whether git keeps the file out of the repository. */
export function isIgnored(path: string): boolean {
  try {
    execFileSync("git", ["check-ignore", "--quiet", path], { cwd: ROOT });
    return true;
  } catch {
    return false;
  }
}
