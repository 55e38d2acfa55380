import { dateAndTime } from "../../shared/format.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { Tag } from "../../shared/states.tsx";
import { words } from "./words.ts";

type Device = ReplyOf<"GET /api/backoffice/v1/devices/">["devices"][number];

/** Whether a device is online, and since when. */
export function Presence({ device }: { readonly device: Pick<Device, "liveness" | "status"> }) {
  const { liveness, status } = device;
  if (status === "revoked") return null;
  if (liveness === null || liveness.since === null) return <span class="soft nowrap">{words().neverSeen}</span>;
  return (
    <>
      <Tag tone={liveness.online ? "good" : "bad"}>{liveness.online ? words().online : words().offline}</Tag>
      <span class="small soft">
        {words().since} {dateAndTime(liveness.since)}
      </span>
    </>
  );
}
