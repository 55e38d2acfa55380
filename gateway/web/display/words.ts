import { dictionary } from "../shared/language.ts";

export const words = dictionary({
  en: { title: "Customer display" },
  de: { title: "Kundenanzeige" },
});
