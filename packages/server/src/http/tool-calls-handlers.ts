/**
 * The tool calls of a person, for that person and for admins.
 *
 * Flow: **http** → tool → task → graph
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal } from "@tropism/api/authorization"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ToolCalls } from "../tool/tool-calls.ts"
import { inProject } from "./access.ts"
import { pageById } from "./paging.ts"
import { keepable } from "./refusals.ts"
import { shownCall } from "./runs-handlers.ts"

export const toolCallsHandlers = HttpApiBuilder.group(Api, "toolCalls", (handlers) =>
  handlers.handle(
    "list",
    Effect.fn("http.toolCalls.list")(function* ({ params, query }) {
      yield* keepable({ userId: query.userId })
      const toolCalls = yield* ToolCalls
      const { userId } = yield* CurrentPrincipal
      const whose = query.userId ?? userId
      return yield* inProject(params.projectId, whose === userId ? "viewer" : "admin", () =>
        Effect.map(
          pageById(query, (before, limit) => toolCalls.ofUser(whose, before, limit)),
          (page) => ({ ...page, items: page.items.map(shownCall) })
        )
      )
    })
  )
)
