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
import { howToGetIn, inProject, reading, requireServerAdmin } from "./access.ts"
import { onTag, taggedByDigest } from "./conditions.ts"
import { KillSwitches } from "../run/kill-switches.ts"
import { pageById } from "./paging.ts"
import { Readiness } from "./readiness.ts"
import { onceOnServer } from "./request-keys.ts"
import { invalid, orNotFound } from "./refusals.ts"

export const version = "0.1.0"

const unready = {
  away: {
    reason: "databaseAway",
    detail:
      "The database does not answer in time, or everything that this server may ask it at once is being asked"
  },
  full: {
    reason: "databaseFull",
    detail:
      "The database has no connection left for this server: others hold them. Let them hold fewer, or let the database take more"
  },
  readOnly: {
    reason: "databaseReadOnly",
    detail: "The database takes nothing that is written: it is a replica, or was set to read only"
  }
} as const

export const systemHandlers = HttpApiBuilder.group(Api, "system", (handlers) =>
  handlers.handleAll({
    health: () => Effect.succeed({ status: "ok" as const, version }),
    ready: Effect.fn("http.ready")(function* () {
      const { look } = yield* Readiness
      const unfit = yield* look
      if (unfit !== undefined) return yield* new Unavailable(unfit)
      const database = yield* Database
      const seen = yield* database.ping
      if (seen !== "writable") return yield* new Unavailable(unready[seen])
      return { status: "ok" as const, version }
    })
  })
)

export const projectsHandlers = HttpApiBuilder.group(Api, "projects", (handlers) =>
  handlers.handleAll({
    me: Effect.fn("http.projects.me")(function* () {
      const principal = yield* CurrentPrincipal
      const advice = howToGetIn(principal)
      return advice === undefined ? principal : { ...principal, advice }
    }),
    list: Effect.fn("http.projects.list")(function* ({ query }) {
      const projects = yield* Projects
      const { projectIds } = yield* CurrentPrincipal
      return yield* pageById(query, (before, limit) => projects.list(projectIds, before, limit))
    }),
    create: Effect.fn("http.projects.create")(function* ({ payload }) {
      const principal = yield* CurrentPrincipal
      yield* requireServerAdmin(principal)
      const fault = findFault(payload.name)
      if (fault) return yield* invalid("/name", fault.message)
      const { seed } = yield* TodoAssistants
      const projects = yield* Projects
      return yield* onceOnServer(principal, projects.create(payload.name, principal.userId, seed))
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
    rename: Effect.fn("http.projects.rename")(function* ({ params, payload }) {
      const fault = findFault(payload.name)
      if (fault) return yield* invalid("/name", fault.message)
      const projects = yield* Projects
      return yield* inProject(params.projectId, "admin", () =>
        orNotFound("project")(projects.rename(payload.name))
      )
    }),
    settings: Effect.fn("http.projects.settings")(function* ({ params }) {
      const projects = yield* Projects
      return yield* Effect.flatMap(reading(params.projectId, projects.settings), taggedByDigest)
    }),
    changeSettings: Effect.fn("http.projects.changeSettings")(function* ({ params, headers, payload }) {
      const projects = yield* Projects
      const changed = inProject(params.projectId, "admin", () =>
        onTag(headers, projects.holdSettings, projects.changeSettings(payload))
      )
      return yield* Effect.flatMap(changed, taggedByDigest)
    })
  })
)
