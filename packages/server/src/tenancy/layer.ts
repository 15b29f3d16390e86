/**
 * The services of projects: members, idempotency keys and dumps. They require the database and KeyNotifications.
 */
import { Layer } from "effect"
import { Dumper } from "./dump.ts"
import { IdempotencyKeys } from "./idempotency-keys.ts"
import { Members, Projects } from "./projects.ts"
import { Restorer } from "./restore.ts"
export const tenancyLayer = Layer.mergeAll(
  Projects.layer,
  Members.layer,
  IdempotencyKeys.layer,
  Dumper.layer,
  Restorer.layer
)
