/** The services of projects: who belongs to one, its requests under a key, and its dumps. It needs the database and KeyNotifications. */
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
