import { dictionary } from "../shared/language.ts";

export const words = dictionary({
  en: { title: "Back office" },
  de: { title: "Verwaltung" },
});
