/** The part of `npm run conformance` for a device: its options, and the person or program that acts at the device. */
import { CommandError, UsageError } from "../../command.ts";
import type { RunOptions } from "../suite.ts";
import type { DeviceUnderTest } from "./device.ts";
import { type DeviceRunResult, runDeviceSuite } from "./device-suite.ts";
import type { DeviceKind } from "./device-world.ts";
import { PersonAtDevice } from "./person.ts";
import { DeviceProgram } from "./program.ts";

export const DEVICE_OPTIONS = {
  device: { type: "string" },
  program: { type: "string" },
  listen: { type: "string" },
  capability: { type: "string", multiple: true },
  provider: { type: "string" },
  model: { type: "string" },
  software: { type: "string" },
  "software-sha256": { type: "string" },
} as const;

export interface DeviceValues {
  readonly device?: string;
  readonly json?: boolean;
  readonly program?: string;
  readonly listen?: string;
  readonly capability?: readonly string[];
  readonly provider?: string;
  readonly model?: string;
  readonly software?: string;
  readonly "software-sha256"?: string;
}

const ANY_PORT = "127.0.0.1:0";
const LISTEN = /^(?<host>\[[\da-fA-F:.]+\]|[^:]+):(?<port>\d{1,5})$/;
const SHA256 = /^[\da-f]{64}$/;
const LARGEST_PORT = 65_535;

/** Throws `UsageError` for an option that a run without a device does not use. */
export function refuseDeviceOptions(values: object): void {
  const other = Object.keys(DEVICE_OPTIONS).find((name) => name in values);
  if (other !== undefined) throw new UsageError(`--${other} is for a run at a device: give --device too; see --help.`);
}

export async function runAtDevice(options: RunOptions, values: DeviceValues): Promise<DeviceRunResult> {
  const kind = kindOf(values.device);
  const listen = addressOf(values.listen ?? ANY_PORT);
  const software = softwareOf(values);
  const device = whoActs(values, options.signal);
  const { capability } = values;
  const asked = capability === undefined ? {} : { capabilities: capability };
  return { ...(await runDeviceSuite({ ...options, ...asked, kind, device, listen })), software };
}

function kindOf(value: string | undefined): DeviceKind {
  if (value === "companion" || value === "display") return value;
  throw new UsageError(`--device is companion or display, and not "${value}".`);
}

function addressOf(value: string): { host: string; port: number } {
  const { host, port } = LISTEN.exec(value)?.groups ?? {};
  if (host === undefined || Number(port) > LARGEST_PORT)
    throw new UsageError(`--listen is an address and a port, as 192.168.1.5:9000, and not "${value}".`);
  return { host, port: Number(port) };
}

function softwareOf({
  provider,
  model,
  software,
  "software-sha256": sha256,
}: DeviceValues): DeviceRunResult["software"] {
  if (sha256 !== undefined && !SHA256.test(sha256))
    throw new UsageError("--software-sha256 is a SHA-256 in 64 small hexadecimal digits.");
  return { provider: provider ?? null, model: model ?? null, version: software ?? null, sha256: sha256 ?? null };
}

function whoActs({ program, json }: DeviceValues, signal: AbortSignal): DeviceUnderTest {
  if (program !== undefined) return new DeviceProgram(program, (line) => process.stderr.write(`${line}\n`));
  if (!process.stdin.isTTY)
    throw new CommandError(
      "There is no terminal to ask a person at; name the program that controls the device with --program.",
    );
  // With --json, only programs read standard output.
  const output = json === true ? process.stderr : process.stdout;
  return new PersonAtDevice({ input: process.stdin, output }, signal, () => process.emit("SIGINT"));
}
