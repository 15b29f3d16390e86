/**
 * Chains: what came of one event, and what it has used.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal, type Principal } from "@tropism/api/authorization"
import type { ChainLink } from "@tropism/api/chains-api"
import { NotFound } from "@tropism/api/problems"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Chains } from "../dispatch/chain-reading.ts"
import { Outbox } from "../outbox/outbox.ts"
import { reading } from "./access.ts"
import { shownRun } from "./owned.ts"
import { pageById } from "./paging.ts"

export const chainsHandlers = HttpApiBuilder.group(Api, "chains", (handlers) =>
  handlers
    .handle(
      "list",
      Effect.fn("http.chains.list")(function* ({ params, query }) {
        const chains = yield* Chains
        return yield* reading(
          params.projectId,
          pageById(query, (before, limit) => chains.list(before, limit))
        )
      })
    )
    .handle(
      "get",
      Effect.fn("http.chains.get")(function* ({ params, query }) {
        const chains = yield* Chains
        const outbox = yield* Outbox
        return yield* reading(
          params.projectId,
          Effect.gen(function* () {
            // The links first: what the head counts is then at least as new as what the page shows.
            const page = yield* pageById(query, (after, limit) =>
              chains.links(params.rootEventId, after, limit)
            )
            const head = yield* chains.find(params.rootEventId)
            if (!head) {
              const event = yield* outbox.get(params.rootEventId)
              return yield* new NotFound({
                detail: event
                  ? `This event begins no chain: it belongs to the chain of ${event.rootEventId}`
                  : "There is no such chain"
              })
            }
            const principal = yield* CurrentPrincipal
            return { ...head, ...page, items: page.items.map((link) => shownLink(principal, link)) }
          })
        )
      })
    )
)

const shownLink = (principal: Principal, link: ChainLink): ChainLink =>
  link.type === "run" ? { ...link, run: shownRun(principal, link.run) } : link
