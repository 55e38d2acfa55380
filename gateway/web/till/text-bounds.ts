/** The longest texts that the till sends. The service has the same bounds; a test compares them. */
export const TEXT_BOUNDS = {
  /** The name of a line. */
  name: 200,
  /** The reference of a slip. */
  reference: 200,
  /** A search in the list of today. */
  search: 100,
} as const;
