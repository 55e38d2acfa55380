/** All checks in the order in which they run; the half minute of silence comes last. */
import type { Check } from "./check.ts";
import { assignmentChecks } from "./checks/assignment.ts";
import { displayChecks, unchangedDisplayChecks } from "./checks/display.ts";
import { enrollmentChecks, revocationChecks, scopeChecks } from "./checks/enrollment.ts";
import { expiryChecks, lapsedChecks } from "./checks/expiry.ts";
import { historyChecks, limitChecks } from "./checks/limits.ts";
import { heartbeatChecks, presenceChecks, silenceChecks } from "./checks/presence.ts";
import { decisionChecks, reportChecks } from "./checks/reports.ts";
import { settlementChecks } from "./checks/settlement.ts";
import { displayStandingChecks, standingChecks } from "./checks/standing.ts";

export const CHECKS: readonly Check[] = [
  ...enrollmentChecks,
  ...presenceChecks,
  ...displayChecks,
  ...settlementChecks,
  ...limitChecks,
  ...assignmentChecks,
  ...reportChecks,
  ...revocationChecks,
  ...decisionChecks,
  ...standingChecks,
  ...expiryChecks,
  ...scopeChecks,
  ...displayStandingChecks,
  ...unchangedDisplayChecks,
  ...silenceChecks,
  ...lapsedChecks,
  ...heartbeatChecks,
  ...historyChecks,
];
