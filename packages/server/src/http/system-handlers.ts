/**
 * Answers for the server itself: health, who am I, and the projects.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal } from "@tropism/api/authorization"
import { Unavailable } from "@tropism/api/problems"
import { findFault } from "@tropism/domain/json"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { TodoAssistants } from "../agent/todo-assistants.ts"
import { Database } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { inProject, reading, requireRole } from "./access.ts"
import { KillSwitches } from "../run/kill-switches.ts"
import { pageById } from "./paging.ts"
import { invalid, orNotFound } from "./refusals.ts"

export const version = "0.1.0"

export const systemHandlers = HttpApiBuilder.group(Api, "system", (handlers) =>
  handlers.handleAll({
    health: () => Effect.succeed({ status: "ok" as const, version }),
    ready: Effect.fn("http.ready")(function* () {
      const database = yield* Database
      if (!(yield* database.ping)) return yield* new Unavailable({ detail: "The database does not answer" })
      return { status: "ok" as const, version }
    })
  })
)

export const projectsHandlers = HttpApiBuilder.group(Api, "projects", (handlers) =>
  handlers.handleAll({
    me: () => CurrentPrincipal,
    list: Effect.fn("http.projects.list")(function* ({ query }) {
      const projects = yield* Projects
      const { projectIds } = yield* CurrentPrincipal
      return yield* pageById(query, (before, limit) => projects.list(projectIds, before, limit))
    }),
    create: Effect.fn("http.projects.create")(function* ({ payload }) {
      const principal = yield* CurrentPrincipal
      yield* requireRole(principal, "admin")
      const fault = findFault(payload.name)
      if (fault) return yield* invalid("/name", fault.message)
      const { seed } = yield* TodoAssistants
      return yield* (yield* Projects).create(payload.name, principal.userId, seed)
    }),
    get: Effect.fn("http.projects.get")(function* ({ params }) {
      const projects = yield* Projects
      const switches = yield* KillSwitches
      return yield* reading(
        params.projectId,
        Effect.gen(function* () {
          const project = yield* orNotFound("project")(projects.find)
          return { ...project, stopped: (yield* switches.find) ?? null }
        })
      )
    }),
    settings: Effect.fn("http.projects.settings")(function* ({ params }) {
      const projects = yield* Projects
      return yield* reading(params.projectId, projects.settings)
    }),
    changeSettings: Effect.fn("http.projects.changeSettings")(function* ({ params, payload }) {
      const projects = yield* Projects
      return yield* inProject(params.projectId, "admin", () => projects.changeSettings(payload))
    })
  })
)
