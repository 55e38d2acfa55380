/**
 * Runs a whole collection, or another of the demos, against the sandbox of `npm start`, and prints every request and answer.
 *
 *   npm run demo -- --help
 */
import { parseArgs } from "node:util";
import { curlLines } from "./demo/curl-lines.ts";
import { DemoError, runDemo } from "./demo/run-demo.ts";
import { DEMOS, type DemoName, demoOf } from "./demo/scenarios.ts";
import { readSandboxFile, sandboxPath } from "./sandbox-file.ts";
import { trustCertificate } from "./trusted-certificate.ts";

const HELP = `Runs a demo against the running sandbox, and prints every request and answer.

  npm run demo                 a collection on the smart POS; the demo plays both devices
  npm run demo -- qr           a collection by QR, with the guest's page
  npm run demo -- issue        two payments that do not fit, and what an operator does
  npm run demo -- robot        a serving task for a fleet of robots

  --curl       runs nothing, and prints the same as lines to paste into a shell
  DATA_DIR     where \`npm start\` keeps sandbox.json; .data

  Exit codes: 0 done, 1 refused or not reached, 2 the arguments cannot be understood.
`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  const options = readArguments();
  if (typeof options === "string") {
    process.stderr.write(`${options}\n`);
    return 2;
  }
  if (options.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const path = sandboxPath(process.env);
  const sandbox = readSandboxFile(path);
  if (sandbox === undefined) throw new DemoError(`There is no sandbox in ${path}; start it with \`npm start\`.`);
  const demo = demoOf(options.demo, sandbox);
  const { baseUrl, certificate } = sandbox;
  if (options.curl) {
    for (const line of curlLines(demo, { baseUrl, publicKeyPin: certificate?.publicKeyPin })) print(line);
    return 0;
  }
  if (certificate !== null) trustCertificate(certificate.file);
  await runDemo(demo, baseUrl, print);
  return 0;
}

/** What was asked for, or one sentence about what cannot be understood. */
function readArguments(): { readonly demo: DemoName; readonly curl: boolean; readonly help: boolean } | string {
  try {
    const options = { help: { type: "boolean", short: "h" }, curl: { type: "boolean" } } as const;
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const name = positionals[0] ?? "collection";
    const demo = DEMOS.find((known) => known === name);
    if (demo === undefined || positionals.length > 1)
      return `There is no demo "${positionals.join(" ")}"; the demos are ${DEMOS.join(", ")}.`;
    return { demo, curl: values.curl === true, help: values.help === true };
  } catch (error) {
    return error instanceof Error ? error.message : "The arguments cannot be understood.";
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof DemoError ? error.message : "The answer cannot be understood."}\n`);
  process.exitCode = 1;
}
