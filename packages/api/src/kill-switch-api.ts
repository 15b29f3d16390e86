/**
 * The kill switches: stop all agents of a project or of the server, and let them go on.
 */
import { ProjectId } from "@tropism/domain/ids"
import { Stop, StopReason } from "@tropism/domain/kill-switch"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Forbidden, InvalidInput, NotFound } from "./problems.ts"

/** A reason is needed to stop and not to go on. */
export const KillSwitchInput = Schema.Struct({
  stopped: Schema.Boolean,
  reason: Schema.optional(Schema.NullOr(StopReason))
}).annotate({ identifier: "KillSwitchInput" })
export type KillSwitchInput = typeof KillSwitchInput.Type

/** What stops the agents now; of a project, that may be the server's switch. */
export const KillSwitch = Schema.Struct({ stopped: Schema.NullOr(Stop) }).annotate({
  identifier: "KillSwitch"
})

export class KillSwitchApi extends HttpApiGroup.make("killSwitch")
  .add(
    HttpApiEndpoint.get("ofServer", "/api/kill-switch", { success: KillSwitch }),
    /** Needs an admin whose token reaches every project. */
    HttpApiEndpoint.put("setServer", "/api/kill-switch", {
      payload: KillSwitchInput,
      success: KillSwitch,
      error: [Forbidden, InvalidInput]
    }),
    HttpApiEndpoint.get("ofProject", "/api/projects/:projectId/kill-switch", {
      params: { projectId: ProjectId },
      success: KillSwitch,
      error: NotFound
    }),
    HttpApiEndpoint.put("setProject", "/api/projects/:projectId/kill-switch", {
      params: { projectId: ProjectId },
      payload: KillSwitchInput,
      success: KillSwitch,
      error: [NotFound, Forbidden, InvalidInput]
    })
  )
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
