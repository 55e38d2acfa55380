import { dictionary } from "../shared/language.ts";

export const words = dictionary({
  en: { title: "Till" },
  de: { title: "Kasse" },
});
