/** All checks in the order in which they run. The check that needs half a minute of silence is last. */
import type { Check } from "./check.ts";
import { assignmentChecks, unchangedAssignmentChecks } from "./checks/assignment.ts";
import { displayChecks, duplicateCallbackChecks, unchangedDisplayChecks } from "./checks/display.ts";
import {
  enrollmentChecks,
  expiredCodeChecks,
  expiringCodeChecks,
  revocationChecks,
  scopeChecks,
} from "./checks/enrollment.ts";
import { expiryChecks, lapsedChecks } from "./checks/expiry.ts";
import { historyChecks, limitChecks } from "./checks/limits.ts";
import { heartbeatChecks, offlineChecks, presenceChecks, silenceChecks } from "./checks/presence.ts";
import { decisionChecks, refusedReportChecks, reportChecks } from "./checks/reports.ts";
import { settlementChecks } from "./checks/settlement.ts";
import { displayStandingChecks, standingChecks } from "./checks/standing.ts";

export const CHECKS: readonly Check[] = [
  ...enrollmentChecks,
  ...presenceChecks,
  ...displayChecks,
  ...settlementChecks,
  ...limitChecks,
  ...duplicateCallbackChecks,
  ...assignmentChecks,
  ...reportChecks,
  ...revocationChecks,
  ...decisionChecks,
  ...standingChecks,
  ...expiryChecks,
  ...unchangedAssignmentChecks,
  ...refusedReportChecks,
  ...scopeChecks,
  ...displayStandingChecks,
  ...unchangedDisplayChecks,
  ...expiringCodeChecks,
  ...silenceChecks,
  ...lapsedChecks,
  ...offlineChecks,
  ...heartbeatChecks,
  ...historyChecks,
  ...expiredCodeChecks,
];
