/** All words of the page, in English and German. */
import { dictionary } from "../shared/language.ts";
import { de } from "./words.de.ts";
import { en } from "./words.en.ts";

export const words = dictionary({ en, de });
