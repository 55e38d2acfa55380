/** The names of the months in the languages of the dictionaries: German, French, Italian, English. */
export const MONTH_NAMES = [
  "januar februar märz april mai juni juli august september oktober november dezember".split(" "),
  "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(" "),
  "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre".split(" "),
  "january february march april may june july august september october november december".split(" "),
] as const satisfies readonly (readonly string[])[];
