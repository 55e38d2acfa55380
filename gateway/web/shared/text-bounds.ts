/** The longest texts that the pages send. The service has the same bounds; a test compares them. */
export const TEXT_BOUNDS = {
  /** The name of a line, a device, a station and the like, and the category of an item. */
  name: 200,
  /** The reference of a slip. */
  reference: 200,
  /** Why a person freezes, revokes or suspends something. */
  reason: 500,
  /** A search in the list of today. */
  search: 100,
} as const;
