/**
 * Strips the types of every module that a test may start a program of, as Node does it itself at each start: that takes a
 * third of what a start costs, and a run starts hundreds of programs.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { basename, join } from "node:path";
import { strippedTypesFile, strippedTypesFolder } from "./folder.mjs";

const CHECKOUT = join(import.meta.dirname, "..", "..", "..");
const PROGRAMS = ["clients", "deploy", "gateway", "machines", "services"];

mkdirSync(strippedTypesFolder, { recursive: true });
const before = new Set(readdirSync(strippedTypesFolder));
const texts = PROGRAMS.flatMap((folder) =>
  readdirSync(join(CHECKOUT, folder), { recursive: true })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(CHECKOUT, folder, name), "utf8")),
);
for (const text of texts) {
  const file = strippedTypesFile(text);
  if (before.delete(basename(file))) continue;
  // Another run may be doing the same: nobody reads half a file.
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, stripTypeScriptTypes(text));
  renameSync(unfinished, file);
}
// What is left was of modules that are not there any more.
for (const name of before) rmSync(join(strippedTypesFolder, name), { force: true });
