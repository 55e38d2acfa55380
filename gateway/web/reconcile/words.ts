import { dictionary } from "../shared/language.ts";

export const words = dictionary({
  en: { title: "Reconciliation" },
  de: { title: "Abgleich" },
});
