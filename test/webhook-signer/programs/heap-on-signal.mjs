/** Loaded before a program: at SIGUSR2 it collects its garbage and writes the bytes of its heap to HEAP_FILE. */
import { renameSync, writeFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
process.on("SIGUSR2", () => {
  collect();
  // Finalizers free memory in a later turn.
  setTimeout(() => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    writeFileSync(`${process.env.HEAP_FILE}.new`, String(heapUsed + arrayBuffers));
    renameSync(`${process.env.HEAP_FILE}.new`, process.env.HEAP_FILE);
  }, 100);
});
