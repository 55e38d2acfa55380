/** The settings of a virtual device, from its environment. */
import { z } from "zod";
import { DeviceStopped } from "./device-error.ts";

const settingsSchema = z.object({
  /** Where the service is, without a path. */
  BASE_URL: z.url({ protocol: /^https?$/ }).default("http://127.0.0.1:8480"),
  /** The certificate of the service in PEM, trusted beside the authorities of Node. */
  GATEWAY_CERTIFICATE_FILE: z.string().optional(),
  /** Needed on the first start and after a reset; ignored while the stored credential is good. */
  ENROLLMENT_CODE: z.string().optional(),
  CREDENTIAL_FILE: z.string().min(1).optional(),
  LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
});

export interface DeviceSettings {
  readonly baseUrl: string;
  readonly certificateFile: string | undefined;
  readonly enrollmentCode: string | undefined;
  readonly credentialFile: string;
  readonly logLevel: string;
}

/** Throws `DeviceStopped` with one sentence when a setting cannot be used. */
export function readSettings(name: string, env: NodeJS.ProcessEnv): DeviceSettings {
  const parsed = settingsSchema.safeParse(env);
  if (!parsed.success) {
    const names = [...new Set(parsed.error.issues.map((issue) => String(issue.path[0])))].join(", ");
    throw new DeviceStopped(`The ${name} cannot start: check the setting ${names}.`);
  }
  const { BASE_URL, GATEWAY_CERTIFICATE_FILE, ENROLLMENT_CODE, CREDENTIAL_FILE, LOG_LEVEL } = parsed.data;
  return {
    baseUrl: BASE_URL,
    certificateFile: GATEWAY_CERTIFICATE_FILE || undefined,
    enrollmentCode: ENROLLMENT_CODE === "" ? undefined : ENROLLMENT_CODE,
    credentialFile: CREDENTIAL_FILE ?? `.data/${name}.json`,
    logLevel: LOG_LEVEL,
  };
}
