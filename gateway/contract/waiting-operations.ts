/** The operations that are answered `storage_low` while the disk is short of space (`services/bus/disk-gate.ts`). */
export const WAITING_OPERATIONS: ReadonlySet<string> = new Set([
  // Below the reserve.
  "platform_organization_create",
  "backoffice_filial_create",
  "backoffice_station_create",
  "backoffice_device_register",
  "backoffice_enrollment_code_issue",
  "payments_device_enroll",
  "backoffice_user_create",
  "backoffice_provider_config_create",
  "backoffice_robotics_consumer_create",
  "backoffice_serving_task_offer",
  "backoffice_webhook_endpoint_register",
  "backoffice_webhook_endpoint_test",
  "robotics_webhook_redeliver",
  // On a full disk.
  "cashier_order_open",
  "cashier_intent_create",
]);
