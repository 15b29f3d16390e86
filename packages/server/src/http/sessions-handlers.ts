/**
 * Answers for the browsers in which somebody is signed in.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentCredential } from "./authorization.ts"
import { pageById } from "./paging.ts"
import { orNotFound } from "./refusals.ts"
import { Sessions } from "./sessions.ts"

export const sessionsHandlers = HttpApiBuilder.group(Api, "sessions", (handlers) =>
  handlers.handleAll({
    list: Effect.fn("http.sessions.list")(function* ({ query }) {
      const sessions = yield* Sessions
      const credential = yield* CurrentCredential
      return yield* pageById(query, (before, limit) => sessions.list(credential, before, limit))
    }),
    endOthers: Effect.fn("http.sessions.endOthers")(function* () {
      const sessions = yield* Sessions
      return { ended: yield* sessions.endOthers(yield* CurrentCredential) }
    }),
    end: Effect.fn("http.sessions.end")(function* ({ params }) {
      const sessions = yield* Sessions
      const ended = sessions.end(yield* CurrentCredential, params.sessionId)
      yield* orNotFound("session")(Effect.map(ended, (done) => done || undefined))
    })
  })
)
