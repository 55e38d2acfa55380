/** Filials and stations for the wire. */
import type { z } from "zod";
import type { filialSchema as FilialMessage } from "../../../services/bus/messages/filials.ts";
import type { Station } from "../../../services/bus/messages/stations.ts";
import type { filialSchema, stationSchema } from "../../contract/backoffice.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";

export function filialWire(filial: z.infer<typeof FilialMessage>): z.infer<typeof filialSchema> {
  return { filial_id: filial.filialId, name: filial.name, created_at: toTimestamp(filial.createdAtMs) };
}

export function stationWire(station: Station): z.infer<typeof stationSchema> {
  return {
    station_id: station.stationId,
    filial_id: station.filialId,
    name: station.name,
    currency: station.currency,
    status: station.status,
    sandbox: station.sandbox,
    created_at: toTimestamp(station.createdAtMs),
  };
}
