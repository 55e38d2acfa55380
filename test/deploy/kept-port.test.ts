/** The port that a restart finds again. */
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { keptPort } from "../../deploy/ports.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder("ports");
afterAll(() => folder.remove());

describe("a kept port", () => {
  it("is the same at each start of one data folder, and each name has its own", async () => {
    const first = await keptPort(folder.path, "sandboxProvider");
    const other = await keptPort(folder.path, "other");
    expect(other).not.toBe(first);
    expect(await keptPort(folder.path, "sandboxProvider")).toBe(first);
    expect(await keptPort(folder.path, "other")).toBe(other);
  });

  it("gives way when somebody else listens there by now, and the new one is kept", async () => {
    const first = await keptPort(folder.path, "taken");
    const squatter = createServer();
    await new Promise<void>((resolve) => {
      squatter.listen(first, "127.0.0.1", resolve);
    });
    const second = await keptPort(folder.path, "taken");
    await new Promise((resolve) => squatter.close(resolve));
    expect(second).not.toBe(first);
    expect(await keptPort(folder.path, "taken")).toBe(second);
  });

  it("survives a damaged file", async () => {
    writeFileSync(join(folder.path, "ports.json"), "{");
    const port = await keptPort(folder.path, "sandboxProvider");
    expect(await keptPort(folder.path, "sandboxProvider")).toBe(port);
  });
});
