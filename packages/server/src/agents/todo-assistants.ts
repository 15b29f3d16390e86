/**
 * Sees to it that each project has had its TodoAssistant, once.
 *
 * A project remembers which agent that was. It is made with the project, or for
 * an older one when somebody asks for it first; one that a person renamed is
 * still the one, and one that a person deleted is not made again.
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
    /** Makes the TodoAssistant of a project that is being made. */
    readonly seed: InProject<Agent>
    /** The agent of that name, else the one that was made as it, made now where there never was one; undefined when a person deleted it. */
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
        // Somebody made one of that name a moment ago: it is the one.
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
        // Of two that ask an older project at once, the second one waits and sees what the first has made.
        const id = (yield* rememberedId(false)) ?? (yield* rememberedId(true))
        if (id === null) return yield* known ? remember(known) : seed
        return known ?? (yield* agents.get(id))
      }).pipe(Effect.withSpan("TodoAssistants.ensure"))

      return TodoAssistants.of({ seed, ensure })
    })
  )
}

/** Nobody in particular wrote the definition. */
const system = "system" as UserId
