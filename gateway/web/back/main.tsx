import "./shell/old-browsers.ts";
import { LocationProvider } from "preact-iso/router";
import { startPage } from "../shared/page.tsx";
import { Audit } from "./audit/audit.tsx";
import "./back.css";
import { Catalogue } from "./catalogue/catalogue.tsx";
import { Certificates } from "./certificates/certificates.tsx";
import { Conformance } from "./conformance/conformance.tsx";
import { Devices } from "./devices/devices.tsx";
import { Overview } from "./overview/overview.tsx";
import { Payments } from "./payments/payments.tsx";
import { People } from "./people/people.tsx";
import { Providers } from "./providers/providers.tsx";
import { Sandboxes } from "./sandbox/sandbox.tsx";
import { Frame, type SectionGroup } from "./shell/frame.tsx";
import { Stations } from "./stations/stations.tsx";
import { Switches } from "./switches/switches.tsx";
import { Webhooks } from "./webhooks/webhooks.tsx";

const GROUPS: readonly SectionGroup[] = [
  { group: "today", sections: { overview: Overview, payments: Payments } },
  { group: "places", sections: { stations: Stations, devices: Devices, catalogue: Catalogue, people: People } },
  { group: "connections", sections: { providers: Providers, webhooks: Webhooks } },
  { group: "safety", sections: { switches: Switches, audit: Audit } },
  { group: "tests", sections: { sandbox: Sandboxes, conformance: Conformance, certificates: Certificates } },
];

startPage(
  <LocationProvider scope="/back/">
    <Frame groups={GROUPS} />
  </LocationProvider>,
);
