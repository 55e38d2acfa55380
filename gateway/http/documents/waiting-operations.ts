/** The operations that are answered `storage_low` while the disk is short of space (`services/bus/disk-gate.ts`). */
export const WAITING_OPERATIONS: ReadonlySet<string> = new Set([
  // Below the reserve.
  "platform_create_organization",
  "backoffice_create_filial",
  "backoffice_create_station",
  "backoffice_register_device",
  "backoffice_issue_enrollment_code",
  "payments_device_enroll",
  "backoffice_create_user",
  "backoffice_create_provider_config",
  "backoffice_create_robotics_consumer",
  "backoffice_offer_serving_task",
  "backoffice_register_webhook_endpoint",
  "backoffice_test_webhook_endpoint",
  "robotics_redeliver_webhook",
  // On a full disk.
  "cashier_open_order",
  "cashier_create_intent",
]);
