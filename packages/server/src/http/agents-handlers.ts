/**
 * Agents: define them, trigger them, ask what they did.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { Unauthorized } from "@tropism/api/problems"
import { isAtRest, type Run } from "@tropism/domain/run"
import { Effect, identity } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agent/agents.ts"
import { firesOf, previewSchedule } from "../agent/schedule-preview.ts"
import { isPassing } from "../database/database-away.ts"
import { AgentHealths } from "../dispatch/agent-health.ts"
import { Triggers } from "../dispatch/triggers.ts"
import { throughOutages } from "../outbox/outages.ts"
import { AgentDays } from "../run/agent-days.ts"
import { inProject, keepingAnswer, reading } from "./access.ts"
import { Closing } from "./closing.ts"
import { onVersion, taggedLoosely } from "./conditions.ts"
import { triggerInput } from "./optional-body.ts"
import { pageById } from "./paging.ts"
import { currentLoss } from "./permits.ts"
import { CurrentKey } from "./request-keys.ts"
import { definitionProblem, invalid, keepable, orNotFound, triggerProblem } from "./refusals.ts"

const known = orNotFound("agent")

export const agentsHandlers = HttpApiBuilder.group(Api, "agents", (handlers) =>
  handlers
    .handle(
      "list",
      Effect.fn("http.agents.list")(function* ({ params, query }) {
        const agents = yield* Agents
        return yield* reading(params.projectId, pageById(query, agents.list))
      })
    )
    .handle(
      "create",
      Effect.fn("http.agents.create")(function* ({ params, payload }) {
        yield* keepable(payload)
        const agents = yield* Agents
        const created = inProject(params.projectId, "admin", ({ userId }) =>
          Effect.mapError(agents.create(payload, userId), definitionProblem)
        )
        return yield* Effect.flatMap(created, taggedLoosely)
      })
    )
    .handle(
      "get",
      Effect.fn("http.agents.get")(function* ({ params }) {
        const agents = yield* Agents
        const agent = known(reading(params.projectId, agents.get(params.agentId)))
        return yield* Effect.flatMap(agent, taggedLoosely)
      })
    )
    .handle(
      "update",
      Effect.fn("http.agents.update")(function* ({ params, headers, payload }) {
        yield* keepable(payload)
        const agents = yield* Agents
        const { expectedVersion, ...patch } = payload
        const updated = onVersion(headers, expectedVersion, (terms) =>
          inProject(params.projectId, "admin", ({ userId }) =>
            Effect.mapError(agents.update(params.agentId, patch, userId, terms), definitionProblem)
          )
        )
        return yield* Effect.flatMap(known(updated), taggedLoosely)
      })
    )
    .handle(
      "delete",
      Effect.fn("http.agents.delete")(function* ({ params, headers }) {
        const agents = yield* Agents
        const deleted = onVersion(headers, null, ({ expectedVersion }) =>
          inProject(params.projectId, "admin", () =>
            Effect.mapError(agents.delete(params.agentId, expectedVersion), definitionProblem)
          )
        ).pipe(Effect.catchTag("Conflict", Effect.die))
        yield* known(Effect.map(deleted, (done) => done || undefined))
      })
    )
    .handle(
      "health",
      Effect.fn("http.agents.health")(function* ({ params, query }) {
        const healths = yield* AgentHealths
        return yield* reading(
          params.projectId,
          pageById(query, (before, limit) => healths.list(before, limit, query.agentId))
        )
      })
    )
    .handle(
      "fires",
      Effect.fn("http.agents.fires")(function* ({ params, query }) {
        const fires = firesOf(query.cronSchedule, query.timezone ?? "UTC").pipe(
          Effect.mapError(({ pointer, detail }) => invalid(pointer.slice(1), detail))
        )
        return { fires: yield* reading(params.projectId, fires) }
      })
    )
    .handle(
      "schedule",
      Effect.fn("http.agents.schedule")(function* ({ params }) {
        const agents = yield* Agents
        return yield* orNotFound("schedule: the agent has no cronSchedule")(
          reading(params.projectId, Effect.flatMap(known(agents.get(params.agentId)), previewSchedule))
        )
      })
    )
    .handle(
      "usage",
      Effect.fn("http.agents.usage")(function* ({ params, query }) {
        const agents = yield* Agents
        const agentDays = yield* AgentDays
        const items = Effect.andThen(
          known(agents.get(params.agentId)),
          agentDays.last(params.agentId, query.days ?? 30)
        )
        return { items: yield* reading(params.projectId, items) }
      })
    )
    .handle(
      "modelUsage",
      Effect.fn("http.agents.modelUsage")(function* ({ params, query }) {
        const agents = yield* Agents
        const agentDays = yield* AgentDays
        const items = Effect.andThen(
          known(agents.get(params.agentId)),
          agentDays.byModel(params.agentId, query.days ?? 30)
        )
        return { items: yield* reading(params.projectId, items) }
      })
    )
    .handleRaw(
      "trigger",
      Effect.fn("http.agents.trigger")(function* ({ params, query }) {
        const input = yield* triggerInput
        yield* keepable(input)
        const agents = yield* Agents
        const triggers = yield* Triggers
        const isKeyed = (yield* CurrentKey) !== undefined
        let begun: Run | undefined
        const runId = yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.gen(function* () {
            const agent = yield* known(agents.get(params.agentId))
            const id = yield* Effect.catchTag(
              triggers.byHand(agent, input, userId),
              "TriggerRefused",
              triggerProblem
            )
            if (!isKeyed) begun = yield* triggers.seen(id)
            return id
          })
        )
        const isAwaited = query.wait !== "false"
        const lost = yield* currentLoss(params.projectId)
        const now = triggers.look(params.projectId, runId)
        const { lastCall } = yield* Closing
        const awaited = Effect.raceAllFirst([
          triggers.settled(params.projectId, runId),
          Effect.andThen(lost, Effect.fail(lostToken)),
          // Under a key the end is told at another server; without one nothing is asked any more that might take long.
          Effect.andThen(lastCall, begun === undefined ? Effect.never : Effect.succeed(begun))
        ])
        const answer = keepingAnswer(
          params.projectId,
          "editor",
          isAwaited ? "awaited" : "at once",
          known(isAwaited ? awaited : now),
          isAwaited ? throughOutages : identity
        )
        // Whatever is not known of it, it has begun: told of a fault, whoever has no key would trigger it again.
        const run = yield* Effect.catchDefect(answer, (defect) =>
          begun !== undefined && isPassing(defect) ? Effect.succeed(begun) : Effect.die(defect)
        )
        return yield* Effect.orDie(HttpServerResponse.json(run, { status: isAtRest(run) ? 200 : 202 }))
      })
    )
)

/** What whoever waits is told whose token may not hear any more how the run ends. */
const lostToken = new Unauthorized({
  detail: "Your token is not good any more, or has another role by now: the run was begun and goes on"
})
