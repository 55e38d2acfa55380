import { Tag } from "../../shared/states.tsx";
import { label, toneOf } from "./labels.ts";

export function StatusTag({ status }: { readonly status: string }) {
  return <Tag tone={toneOf(status)}>{label("status", status)}</Tag>;
}
