/** What the newcomer reads when everything runs. */
import { curlLines } from "./curl-lines.ts";
import type { SandboxFacts, SandboxStation } from "./facts.ts";

export function printout(facts: SandboxFacts, factsPath: string): string {
  return [
    "",
    `Device payments is running at ${facts.baseUrl}`,
    "",
    `  owner     ${facts.owner.email}  ${facts.owner.password}`,
    `  cashier   ${facts.cashier.email}  ${facts.cashier.password}`,
    ...stationLines(facts.station),
    ...stationLines(facts.demoStation),
    `            A virtual companion and a virtual display serve "${facts.demoStation.name}": take its lease, open an order,`,
    "            pick smart_pos; the companion reports within seconds, and you attest. Watch logs/virtual-display.log.",
    "",
    `  API page  ${facts.links.apiPage}`,
    `  contract  ${facts.links.openapi}`,
    `  ready?    ${facts.links.readiness}`,
    `  as JSON   ${factsPath}`,
    "",
    "The route dynamic_qr asks the sandbox provider: an amount is approved, unless it ends in",
    ...facts.magicAmounts.map(({ ending, provider, outcome }) => `  ${ending}  ${provider}: ${outcome}`),
    "",
    "A whole collection, to paste into a shell (once; the next start prints fresh lines):",
    "",
    ...curlLines(facts),
    "",
    "Ctrl-C drains and stops; the data stays.",
    "",
  ].join("\n");
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
