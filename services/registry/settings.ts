/** What an operator may set about the registry. */
import { z } from "zod";

export const registrySettingsSchema = z.object({
  /**
   * Keys the hashes of enrollment codes and of known addresses. A code has 50 bits only, an IPv4 address 32, so a
   * thief of a backup could find either from a plain hash by trying; with a key that is not in the database they cannot.
   * Left out, the hashes are plain SHA-256.
   */
  ENROLLMENT_CODE_KEY: z.string().min(16, "it must have at least 16 characters").optional(),
});
export type RegistrySettings = z.infer<typeof registrySettingsSchema>;
