/** The logs whose commits are copied. */
import { STATION_LOG } from "../bus/streams.ts";
import { STATION_LOG_ALL, stationLogSubject } from "../bus/subjects.ts";
import type { AuditedLogs } from "./deps.ts";

const LOG = { name: STATION_LOG.name, commits: STATION_LOG_ALL };
export const AUDITED_LOGS: AuditedLogs = { all: [LOG], of: () => LOG, subject: stationLogSubject };
