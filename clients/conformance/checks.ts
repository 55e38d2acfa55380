/** All checks in the order in which they run; the half minute of silence comes last. */
import type { Check } from "./check.ts";
import { assignmentChecks } from "./checks/assignment.ts";
import { displayChecks } from "./checks/display.ts";
import { enrollmentChecks, revocationChecks } from "./checks/enrollment.ts";
import { expiryChecks, lapsedChecks } from "./checks/expiry.ts";
import { limitChecks } from "./checks/limits.ts";
import { presenceChecks, silenceChecks } from "./checks/presence.ts";
import { decisionChecks, reportChecks } from "./checks/reports.ts";
import { settlementChecks } from "./checks/settlement.ts";
import { standingChecks } from "./checks/standing.ts";

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
  ...silenceChecks,
  ...lapsedChecks,
];
