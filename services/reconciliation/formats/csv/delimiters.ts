/** What divides the fields of a CSV record. */
export const DELIMITERS = [",", ";", "\t", "|"] as const;
