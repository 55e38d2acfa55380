/** What the newcomer reads when everything runs. */
import { collectionLines, demoLines, servingTaskLines } from "./curl-lines.ts";
import type { MagicBehaviourFacts, SandboxFacts, SandboxStation } from "./facts.ts";
import { operatorLines, qrLines } from "./qr-lines.ts";

export interface PrintedPaths {
  /** The facts as JSON. */
  readonly facts: string;
  /** What the virtual display shows, line by line. */
  readonly displayLog: string;
  /** Where the virtual display keeps its credential. */
  readonly displayCredential: string;
}

export function printout(facts: SandboxFacts, paths: PrintedPaths): string {
  return [
    "",
    `Device payments is running at ${facts.baseUrl}`,
    "",
    `  owner     ${facts.owner.email}  ${facts.owner.password}`,
    `  cashier   ${facts.cashier.email}  ${facts.cashier.password}`,
    `  operator  ${facts.operator.email}  ${facts.operator.password}`,
    `  robots    consumer ${facts.robotics.consumerId}  ${facts.robotics.credential}`,
    ...stationLines(facts.station),
    ...stationLines(facts.demoStation),
    `            A virtual companion and a virtual display serve "${facts.demoStation.name}": take its lease, open an order,`,
    "            pick smart_pos; the companion reports within seconds, and you attest. What the display shows:",
    `            tail -f ${shellWord(paths.displayLog)}`,
    "",
    `  API page  ${facts.links.apiPage}`,
    `  contract  ${facts.links.openapi}`,
    `  ready?    ${facts.links.readiness}`,
    `  as JSON   ${paths.facts}`,
    "",
    "The route dynamic_qr asks the sandbox provider: an amount is approved, unless it ends in",
    ...facts.magicAmounts.map(({ ending, provider, outcome }) => `  ${ending}  ${provider}: ${outcome}`),
    "",
    "On smart_pos the virtual companion reports a success, unless its device's name ends in these words, or else the",
    "amount in these digits (docs/sandbox.md tells what becomes of the collection):",
    ...behaviourLines(facts.magicBehaviours),
    "",
    `A whole collection at "${facts.station.name}", to paste into a shell (${howOften(facts.station)}):`,
    "",
    ...pinned(collectionLines(facts), facts),
    "",
    `A collection at "${facts.demoStation.name}", where the virtual devices do their part (as often as you like):`,
    "",
    ...pinned(demoLines(facts), facts),
    "",
    `A QR collection at "${facts.demoStation.name}", with the guest's page (as often as you like):`,
    "",
    ...pinned(qrLines(facts, shellWord(paths.displayCredential)), facts),
    "",
    `A QR collection at "${facts.demoStation.name}" whose money does not fit, and what an operator does (as often as you like):`,
    "",
    ...pinned(operatorLines(facts), facts),
    "",
    "A serving task for a fleet of robots, which lists, accepts and completes it (as often as you like):",
    "",
    ...pinned(servingTaskLines(facts), facts),
    "",
    "Ctrl-C drains and stops; the data stays.",
    "",
  ].join("\n");
}

/**
 * Where the gateway speaks TLS itself, each line takes its certificate and no other: by its public key, whatever names
 * and authority it has. The guest's page is at the sandbox provider.
 */
function pinned(lines: readonly string[], { certificate }: SandboxFacts): readonly string[] {
  if (certificate === null) return lines;
  const curl = `curl --insecure --pinnedpubkey ${certificate.publicKeyPin} `;
  return lines.map((line) => line.replaceAll(/\bcurl (?!-sS (?:-o \/dev\/null )?"\$QR")/g, curl));
}

/** In columns: the name's ending, the amount's, and what the companion does. */
function behaviourLines(behaviours: readonly MagicBehaviourFacts[]): string[] {
  const width = Math.max(...behaviours.map(({ nameEnding }) => nameEnding.length));
  return behaviours.map(
    ({ nameEnding, amountEnding, companion }) => `  ${nameEnding.padEnd(width)}  ${amountEnding ?? "  "}  ${companion}`,
  );
}

/** A code can be claimed once; lines for devices that have enrolled reset them instead. */
function howOften(station: SandboxStation): string {
  return station.devices.some((device) => device.enrollmentCode !== null)
    ? "once, because it spends the codes; the next start prints lines that work again and again"
    : "as often as you like";
}

/** A path as one word of a shell. */
function shellWord(path: string): string {
  return /^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
}

function stationLines(station: SandboxStation): string[] {
  return [
    `  station   ${station.stationId}  ${station.name}`,
    ...station.devices.map((device) => {
      const code = device.enrollmentCode === null ? "enrolled" : `enrollment code ${device.enrollmentCode}`;
      return `            device ${device.deviceId}  ${device.kind}  ${code}`;
    }),
  ];
}
