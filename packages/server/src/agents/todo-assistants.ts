/**
 * Creates the TodoAssistant of each project, once.
 *
 * The project stores the agent's id. It is created with the project, or for an older project on the first request; a renamed one remains
 * the TodoAssistant, and a deleted one is not created again.
 */
import type { Agent } from "@tropism/domain/agent"
import type { AgentId, UserId } from "@tropism/domain/ids"
import { todoAssistant, todoAssistantName } from "@tropism/domain/todo-assistant"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { Agents } from "./agents.ts"

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class TodoAssistants extends Context.Service<
  TodoAssistants,
  {
    /** Creates the TodoAssistant of a new project. */
    readonly seed: InProject<Agent>
    /**
     * Returns the agent of that name, otherwise the project's TodoAssistant, which is created if there never was one; undefined when a
     * person deleted it.
     */
    readonly ensure: InProject<Agent | undefined>
  }
>()("@tropism/server/agent/TodoAssistants") {
  static readonly layer = Layer.effect(
    TodoAssistants,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const agents = yield* Agents

      const named = Effect.map(agents.named([todoAssistantName]), (found) => found.get(todoAssistantName))

      const remember = Effect.fnUntraced(function* (agent: Agent) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`update kb.projects set assistant_id = ${agent.id} where id = ${projectId} and assistant_id is null`
        return agent
      }, orDie)

      const seed = agents.create(todoAssistant, system).pipe(
        // A concurrent request has just created one of that name: use it.
        Effect.catch((refused) =>
          Effect.flatMap(named, (agent) => (agent ? Effect.succeed(agent) : Effect.die(refused)))
        ),
        Effect.flatMap(remember),
        Effect.withSpan("TodoAssistants.seed")
      )

      const rememberedId = Effect.fnUntraced(function* (isHeld: boolean) {
        const { projectId } = yield* ProjectTransaction
        const row = yield* Effect.flatMap(
          sql<{ assistantId: AgentId | null }>`
            select assistant_id from kb.projects where id = ${projectId} ${sql.literal(isHeld ? "for no key update" : "")}`,
          onlyRow
        )
        return row.assistantId
      }, orDie)

      const ensure = Effect.gen(function* () {
        const known = yield* named
        // Of two concurrent requests for an older project the second waits and then sees the first one's agent.
        const id = (yield* rememberedId(false)) ?? (yield* rememberedId(true))
        if (id === null) return yield* known ? remember(known) : seed
        return known ?? (yield* agents.get(id))
      }).pipe(Effect.withSpan("TodoAssistants.ensure"))

      return TodoAssistants.of({ seed, ensure })
    })
  )
}

/** The definition has no person as its author. */
const system = "system" as UserId
