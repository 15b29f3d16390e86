/**
 * Stops all agents of a project or of the server, and lets them go on.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal, type Principal } from "@tropism/api/authorization"
import type { KillSwitchInput } from "@tropism/api/kill-switch-api"
import { findFault } from "@tropism/domain/json"
import type { ProjectId } from "@tropism/domain/ids"
import type { Stop } from "@tropism/domain/kill-switch"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { KillSwitches } from "../run/kill-switches.ts"
import { looking, reading, requireServerAdmin } from "./access.ts"
import { invalid } from "./refusals.ts"

const shown = (stop: Stop | undefined) => ({ stopped: stop ?? null })

export const killSwitchHandlers = HttpApiBuilder.group(Api, "killSwitch", (handlers) =>
  handlers.handleAll({
    ofServer: Effect.fn("http.killSwitch.ofServer")(function* () {
      const switches = yield* KillSwitches
      return shown(yield* switches.ofServer)
    }),
    setServer: Effect.fn("http.killSwitch.setServer")(function* ({ payload }) {
      const switches = yield* KillSwitches
      const principal = yield* CurrentPrincipal
      yield* requireServerAdmin(principal)
      yield* turn(null, payload, principal)
      return shown(yield* switches.ofServer)
    }),
    ofProject: Effect.fn("http.killSwitch.ofProject")(function* ({ params }) {
      const switches = yield* KillSwitches
      return shown(yield* reading(params.projectId, switches.find))
    }),
    setProject: Effect.fn("http.killSwitch.setProject")(function* ({ params, payload }) {
      const switches = yield* KillSwitches
      const principal = yield* looking(params.projectId, "admin", Effect.succeed)
      yield* turn(params.projectId, payload, principal)
      return shown(yield* reading(params.projectId, switches.find))
    })
  })
)

/** Not in a transaction of the caller's: a switch is on when it is committed, and only then do runs follow. */
const turn = Effect.fnUntraced(function* (
  projectId: ProjectId | null,
  { reason, stopped }: KillSwitchInput,
  { userId }: Principal
) {
  const switches = yield* KillSwitches
  if (!stopped) return yield* switches.release(projectId)
  if (reason === undefined || reason === null)
    return yield* invalid("/reason", "Say why the agents are stopped: whoever meets the switch will read it")
  const fault = findFault(reason)
  if (fault) return yield* invalid("/reason", fault.message)
  return yield* switches.stop(projectId, reason, userId)
})
