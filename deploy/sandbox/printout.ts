/** What a person reads when everything runs; it fits on one screen. */
import type { SandboxFacts, SandboxStation } from "./facts.ts";

export function printout(facts: SandboxFacts, factsPath: string): string {
  const { owner, cashier, operator, links } = facts;
  return [
    "",
    `Device payments is running at ${facts.baseUrl}`,
    "",
    `  API page  ${links.apiPage}`,
    `  ready?    ${links.readiness}`,
    "",
    `  owner     ${owner.email}  ${owner.password}`,
    `  cashier   ${cashier.email}  ${cashier.password}`,
    `  operator  ${operator.email}  ${operator.password}`,
    ...stationLines(facts.station),
    `  station   ${facts.demoStation.stationId}  ${facts.demoStation.name}: a virtual companion and display serve it`,
    `  as JSON   ${factsPath}, with the robots' credential and the amounts that force an outcome`,
    "",
    "Next, in another shell:",
    "",
    "  npm run demo            a whole collection, with every request and answer",
    "  npm run demo -- --help  by QR, with an issue, with a robot; or as curl lines to paste",
    "",
    "Ctrl-C drains and stops; the data stays.",
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
