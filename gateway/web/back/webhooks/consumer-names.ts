import type { ReplyOf } from "../../shared/operations.ts";

type Consumer = ReplyOf<"GET /api/backoffice/v1/robotics-consumers/">["robotics_consumers"][number];

/** The consumers by id, for names and selections. */
export interface ConsumerNames {
  readonly options: readonly { readonly value: string; readonly text: string }[];
  nameOf(id: number): string;
}

export const namesOf = (consumers: readonly Consumer[]): ConsumerNames => ({
  options: consumers.map(({ consumer_id, name }) => ({ value: String(consumer_id), text: name })),
  nameOf: (id) => consumers.find(({ consumer_id }) => consumer_id === id)?.name ?? `#${id}`,
});
