/** The part of the address that chooses the list. It is no filter: clearing the filters keeps it. */
export const VIEWS = ["view"];
