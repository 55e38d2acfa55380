/** The station log of a bus with a single log, as in most tests. */
import { type StationLogDefinition, StationLogs } from "../../services/bus/streams.ts";

export const ONE_LOG = new StationLogs(1);
export const STATION_LOG = ONE_LOG.all[0] as StationLogDefinition;
/** The subjects of all commits. */
export const STATION_LOG_ALL = STATION_LOG.commits;
export const stationLogSubject = (stationId: number): string => ONE_LOG.subject(stationId);
export const stationConfirmSubject = (): string => STATION_LOG.confirmSubject;
