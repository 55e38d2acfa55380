/** Where the sandbox provider of `npm start` listens. */
import { createServer, type Server } from "node:net";
import { afterAll, afterEach, expect, it } from "vitest";
import { createContext } from "../../deploy/application-context.ts";
import { freePort } from "../../deploy/ports.ts";
import { portStep } from "../../deploy/server-steps.ts";
import { readSettings } from "../../deploy/settings.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder("sandbox-port");
const listeners: Server[] = [];

afterEach(() => {
  for (const listener of listeners.splice(0)) listener.close();
});
afterAll(() => folder.remove());

async function sandboxAddress(settings: NodeJS.ProcessEnv): Promise<string> {
  const environment = { PORT: "0", DATA_DIR: folder.path, ...settings };
  const context = createContext({
    settings: readSettings(environment),
    checkout: folder.path,
    environment,
    print: () => undefined,
  });
  await portStep(context).start({ stopping: new AbortController().signal, fail: () => undefined });
  return context.addresses.get("sandboxProvider");
}

it("is the operator's port", async () => {
  const port = String(await freePort());
  expect(await sandboxAddress({ SANDBOX_PROVIDER_PORT: port })).toBe(`http://127.0.0.1:${port}`);
});

it("is the operator's address, whatever the port behind it", async () => {
  const address = "https://sandbox.example.com";
  const port = String(await freePort());
  expect(await sandboxAddress({ SANDBOX_PROVIDER_URL: address, SANDBOX_PROVIDER_PORT: port })).toBe(address);
});

it.each(["", "0"])("is the kept port of the data folder when the setting is '%s'", async (port) => {
  expect(await sandboxAddress({ SANDBOX_PROVIDER_PORT: port })).toBe(await sandboxAddress({}));
});

it("is no port that another program has: the start is refused and names the setting", async () => {
  const port = await freePort();
  const listener = createServer();
  listeners.push(listener);
  await new Promise<void>((resolve) => {
    listener.listen(port, "127.0.0.1", resolve);
  });
  await expect(sandboxAddress({ SANDBOX_PROVIDER_PORT: String(port) })).rejects.toThrow(
    `Port ${port} on 127.0.0.1 is taken by another program; set SANDBOX_PROVIDER_PORT to a free one.`,
  );
});
