/** Which of the lists is shown is no filter of it. */
export const VIEWS = ["view"];
