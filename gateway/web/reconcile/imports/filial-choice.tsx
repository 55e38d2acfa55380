/** Whose payments arrive in an account: those of one filial, or of several. */
import type { Signal } from "@preact/signals";
import { Choice } from "../../shared/field.tsx";
import { filials } from "../known.ts";
import { words } from "../words.ts";

/** Null stands for several filials. */
export function FilialChoice({ filialId }: { readonly filialId: Signal<number | null> }) {
  return (
    <Choice
      label={words().account.filial}
      value={String(filialId.value ?? "")}
      onChange={(value) => {
        filialId.value = value === "" ? null : Number(value);
      }}
      options={[
        { value: "", text: words().account.sharedByFilials },
        ...filials.value.map(({ filial_id, name }) => ({ value: String(filial_id), text: name })),
      ]}
    />
  );
}
