/**
 * What an agent has handled: read it, and let it try again.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { clampLimit } from "@tropism/api/page"
import { Conflict, type InvalidInput, NotFound } from "@tropism/api/problems"
import type { BatchTriggerInput } from "@tropism/api/processing-api"
import type { AgentId, ProjectId } from "@tropism/domain/ids"
import type { ProcessingEntry } from "@tropism/domain/processing"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agent/agents.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { BatchTriggers, type Wanted } from "../dispatch/batch-triggers.ts"
import { PendingEvents } from "../dispatch/pending-events.ts"
import { ReactionQueues } from "../dispatch/reaction-queues.ts"
import { Retries } from "../dispatch/retries.ts"
import { ProcessingLog } from "../run/processing-log.ts"
import { inProject, reading } from "./access.ts"
import { cursorAt, cursorId, markOf, pageById } from "./paging.ts"
import { invalid, orNotFound, triggerProblem } from "./refusals.ts"

const known = orNotFound("agent")

const noEntry = new NotFound({ detail: "There is no such entry" })

/** A page of an agent's entries. The log outlives its agent: a deleted one keeps its versions and is known by them (S001-R20). */
const entriesOf = <A extends ProcessingEntry>(
  { agentId, projectId }: { readonly agentId: AgentId; readonly projectId: ProjectId },
  query: Parameters<typeof pageById>[0],
  read: (
    before: string | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<A>, never, ProjectTransaction>
) =>
  Effect.flatMap(Agents, (agents) =>
    reading(projectId, Effect.andThen(known(agents.version(agentId, 1)), pageById(query, read)))
  )

export const processingHandlers = HttpApiBuilder.group(Api, "processing", (handlers) =>
  handlers
    .handle(
      "queues",
      Effect.fn("http.processing.queues")(function* ({ params, query }) {
        const queues = yield* ReactionQueues
        return yield* reading(
          params.projectId,
          pageById(query, (before, limit) => queues.list(before, limit))
        )
      })
    )
    .handle(
      "log",
      Effect.fn("http.processing.log")(function* ({ params, query }) {
        const log = yield* ProcessingLog
        return yield* entriesOf(params, query, (before, limit) =>
          log.list(params.agentId, query.status, before, limit)
        )
      })
    )
    .handle(
      "retry",
      Effect.fn("http.processing.retry")(function* ({ params }) {
        const agents = yield* Agents
        const log = yield* ProcessingLog
        const retries = yield* Retries
        return yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.gen(function* () {
            const agent = yield* known(agents.get(params.agentId))
            const entry = yield* orNotFound("entry")(log.get(params.entryId))
            if (entry.agentId !== agent.id) return yield* noEntry
            return yield* retries.retry(agent, entry, userId).pipe(
              Effect.catchTag("RetryRefused", ({ detail }) =>
                Effect.fail(new Conflict({ reason: "state", detail }))
              ),
              Effect.catchTag("TriggerRefused", triggerProblem)
            )
          })
        )
      })
    )
    .handle(
      "deadLetters",
      Effect.fn("http.processing.deadLetters")(function* ({ params, query }) {
        const log = yield* ProcessingLog
        return yield* entriesOf(params, query, (before, limit) => log.listDead(params.agentId, before, limit))
      })
    )
    .handle(
      "redrive",
      Effect.fn("http.processing.redrive")(function* ({ params, payload }) {
        const agents = yield* Agents
        const retries = yield* Retries
        return yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.gen(function* () {
            const agent = yield* known(agents.get(params.agentId))
            return yield* Effect.catchTag(
              retries.redrive(agent, payload.ids ?? undefined, userId),
              "TriggerRefused",
              triggerProblem
            )
          })
        )
      })
    )
    .handle(
      "pendingEvents",
      Effect.fn("http.processing.pendingEvents")(function* ({ params, query }) {
        const agents = yield* Agents
        const pending = yield* PendingEvents
        const mark = yield* markOf(query)
        const before = yield* cursorId(query, mark)
        return yield* reading(
          params.projectId,
          Effect.flatMap(known(agents.get(params.agentId)), (agent) =>
            Effect.map(pending.page(agent, before, clampLimit(query.limit)), (page) => ({
              ...page,
              nextCursor: page.nextCursor === null ? null : cursorAt(page.nextCursor, mark)
            }))
          )
        )
      })
    )
    .handle(
      "batchTrigger",
      Effect.fn("http.processing.batchTrigger")(function* ({ params, payload }) {
        const agents = yield* Agents
        const batches = yield* BatchTriggers
        const wanted = yield* wantedOf(payload)
        return yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.flatMap(known(agents.get(params.agentId)), (agent) =>
            Effect.catchTag(batches.trigger(agent, wanted, userId), "TriggerRefused", triggerProblem)
          )
        )
      })
    )
)

/** Objects or events, and not both: an item would be asked for twice. */
const wantedOf = ({
  eventIds,
  objectIds
}: typeof BatchTriggerInput.Type): Effect.Effect<Wanted, InvalidInput> => {
  if (objectIds && !eventIds) return Effect.succeed({ type: "objects", ids: objectIds })
  if (eventIds && !objectIds) return Effect.succeed({ type: "events", ids: eventIds })
  return Effect.fail(
    invalid(objectIds ? "/eventIds" : "/objectIds", "Name either objectIds or eventIds, and not both")
  )
}
