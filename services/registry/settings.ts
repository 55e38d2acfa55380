/** What an operator may set about the registry. */
import { z } from "zod";

export const registrySettingsSchema = z.object({
  /**
   * Keys the hash of enrollment codes. A code has 50 bits only, so whoever reads a plain hash from a stolen backup could
   * find the code by trying; with a key that is not in the database they cannot. Left out, the hash is plain SHA-256.
   */
  ENROLLMENT_CODE_KEY: z.string().min(16).optional(),
});
export type RegistrySettings = z.infer<typeof registrySettingsSchema>;
