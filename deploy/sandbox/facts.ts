/** What a newcomer, or a program, needs to know of the running sandbox: written to `sandbox.json` and printed. */
import { join } from "node:path";
import { writePrivateJson } from "../data-folder.ts";

export interface SandboxDevice {
  readonly deviceId: number;
  readonly name: string;
  readonly kind: string;
  /** A one-time code while the device still has to enroll; null once it has. */
  readonly enrollmentCode: string | null;
}

interface SandboxStation {
  readonly stationId: number;
  readonly name: string;
  readonly devices: readonly SandboxDevice[];
}

/** What the virtual companion does for a device name or, when the name has no such ending, for an amount. */
export interface MagicBehaviourFacts {
  /** The last words of the device's name. */
  readonly nameEnding: string;
  /** The last two digits of the amount; null when only a name causes this behaviour. */
  readonly amountEnding: string | null;
  readonly companion: string;
  readonly outcome: string;
}

/** `start` is the one-time link of this start, which logs in the person at this machine. */
type LinkName = "start" | "apiPage" | "openapi" | "health" | "readiness" | "magicAmounts";

export interface SandboxFacts {
  readonly baseUrl: string;
  /** The gateway's certificate when it serves TLS itself: a PEM file, and the public key in the format of curl's pins. */
  readonly certificate: { readonly file: string; readonly publicKeyPin: string } | null;
  readonly owner: { readonly email: string; readonly password: string };
  readonly cashier: { readonly email: string; readonly password: string };
  /** The reconciliation operator, who attributes payments and closes issues. */
  readonly operator: { readonly email: string; readonly password: string };
  /** A fleet of robots at the sandbox's filial, with the credential that it sends as a bearer token. */
  readonly robotics: { readonly consumerId: number; readonly credential: string };
  /** The station whose devices the newcomer plays. */
  readonly station: SandboxStation;
  /** The station that a virtual companion and a virtual display are attached to. */
  readonly demoStation: SandboxStation;
  /** What the sandbox provider does for an amount whose minor units have this ending; it approves any other amount. */
  readonly magicAmounts: readonly { readonly ending: string; readonly provider: string; readonly outcome: string }[];
  /** For any other name and amount, the virtual companion reports a success. */
  readonly magicBehaviours: readonly MagicBehaviourFacts[];
  readonly links: Readonly<Record<LinkName, string>>;
}

/** Writes the facts for programs. They hold passwords and codes. */
export function writeFacts(dataDir: string, facts: SandboxFacts): string {
  const path = join(dataDir, "sandbox.json");
  writePrivateJson(path, facts);
  return path;
}

/** What a person reads when everything runs; it fits on one screen. */
export function printout(facts: SandboxFacts, factsPath: string): string {
  const { owner, cashier, operator, links } = facts;
  return [
    "",
    `Open ${links.start}`,
    "to see a payment from order to paid: signed in, works once, within 15 minutes.",
    "",
    `Device payments is running at ${facts.baseUrl}`,
    "",
    `  API page  ${links.apiPage}`,
    `  ready?    ${links.readiness}`,
    "",
    `  owner     /back/       ${owner.email}  ${owner.password}`,
    `  cashier   /till/       ${cashier.email}  ${cashier.password}`,
    `  operator  /reconcile/  ${operator.email}  ${operator.password}`,
    ...stationLines(facts.station),
    `  station   ${facts.demoStation.stationId}  ${facts.demoStation.name}: a virtual companion and display serve it`,
    `  as JSON   ${factsPath}, with the robots' credential and the amounts that force an outcome`,
    "",
    "Next, in another shell:",
    "",
    "  npm run demo            a whole collection, with every request and answer",
    "  npm run demo -- --help  by QR, with an issue, with a robot; or as curl lines to paste",
    "",
    "Ctrl-C stops within two seconds; the data stays.",
    "",
  ].join("\n");
}

function stationLines(station: SandboxStation): string[] {
  return [
    `  station   ${station.stationId}  ${station.name}`,
    ...station.devices.map(({ deviceId, kind, enrollmentCode }) => {
      const code = enrollmentCode === null ? "enrolled" : `enrollment code ${enrollmentCode}`;
      return `            device ${deviceId}  ${kind}  ${code}`;
    }),
  ];
}
