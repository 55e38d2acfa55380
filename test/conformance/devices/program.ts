/** The test display as a program that the suite instructs (docs/conformance.md, "A device under test"). */
import { createInterface } from "node:readline";
import { TestDisplay } from "./test-display.ts";

const device = new TestDisplay();

interface Instruction {
  readonly id: number;
  readonly instruction: string;
  readonly base_url: string;
  readonly code: string;
}

async function follow({ id, instruction, base_url: baseUrl, code }: Instruction): Promise<object> {
  if (instruction === "enroll") await device.enroll({ baseUrl, code });
  return instruction === "shown" ? { id, shown: await device.shown() } : { id };
}

process.stdout.write("The display is ready.\n");
for await (const line of createInterface(process.stdin)) {
  process.stdout.write(`${JSON.stringify(await follow(JSON.parse(line) as Instruction))}\n`);
}
