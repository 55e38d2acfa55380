// Makes folders. Plain JavaScript, because the first start uses it before TypeScript can run.
import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/** @type {import("./make-folder.d.mts").makeFolder} */
export function makeFolder(path, mode = 0o777) {
  if (existsSync(path)) return;
  makeFolder(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have made it in between.
    if (error.code !== "EEXIST") throw error;
  }
}
