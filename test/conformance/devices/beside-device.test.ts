/** The operator of a device under test: a person who leaves, and a program that starts another program. */
import { PassThrough } from "node:stream";
import { expect, test, vi } from "vitest";
import { PersonAtDevice } from "../../../clients/conformance/devices/person.ts";
import { DeviceProgram } from "../../../clients/conformance/devices/program.ts";

test("the end of the terminal's input: ends the run; a person who stops without a question: does not end it", async () => {
  const stopping = new AbortController();
  const endRun = vi.fn(() => stopping.abort());
  const at = () => {
    const streams = { input: new PassThrough(), output: new PassThrough() };
    return { ...streams, person: new PersonAtDevice(streams, stopping.signal, endRun) };
  };
  await at().person.stop();
  expect(endRun).not.toHaveBeenCalled();
  const { person, input } = at();
  const asked = expect(person.finish()).rejects.toThrow(/abort/i);
  input.end();
  await asked;
  expect(endRun).toHaveBeenCalledOnce();
});

test("a program that has started another one in a separate process group: the power cut does not wait for it", async () => {
  const sleep = `require("node:child_process").spawn("sleep", ["8"], { detached: true, stdio: "inherit" }).unref()`;
  const echo = `process.stdin.on("data", (line) => process.stdout.write(line))`;
  const program = new DeviceProgram(`"${process.execPath}" -e '${sleep}; ${echo}'`, () => undefined);
  await program.payments("approve");
  const beganAtMs = performance.now();
  await program.stop();
  expect(performance.now() - beganAtMs).toBeLessThan(5_000);
});
