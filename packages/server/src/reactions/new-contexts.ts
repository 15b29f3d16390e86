/**
 * Creates conversations with an agent, new ones or forks at an event of another context.
 *
 * A fork copies nothing: it reads the earlier events from the original. What was open at that event is closed in the fork's own log, so
 * both continue independently.
 */
import type { Agent } from "@tropism/domain/agent"
import type { ReducedContext } from "@tropism/domain/context"
import type { ContextName, NewEvent } from "@tropism/domain/context-event"
import type { UserId } from "@tropism/domain/ids"
import { firstSettings } from "@tropism/domain/model-settings"
import { Context, Effect, Layer, Option, Schema } from "effect"
import { type PromptFailed, renderPrompt } from "../agents/template.ts"
import { type ContextExists, type ContextHead, Contexts } from "../contexts/contexts.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { forkClosing } from "../runs/stopping.ts"
import { Projects } from "../tenancy/projects.ts"

/** A fork cannot begin at this event. */
export class ForkRefused extends Schema.TaggedError<ForkRefused>()("ForkRefused", {
  detail: Schema.String
}) {}

/** The context to fork, and where. */
export interface ForkTerms {
  readonly from: ContextHead
  /** The number of the last shared event; the last event when absent. */
  readonly at: number | undefined
}

type InProject<A, E> = Effect.Effect<A, E, ProjectTransaction>

export class ContextBeginnings extends Context.Service<
  ContextBeginnings,
  {
    /** Creates a conversation with an agent, private to its owner if one is given; its log begins with the agent's system prompt. */
    readonly open: (
      name: ContextName,
      agent: Agent,
      owner?: UserId | null
    ) => InProject<ContextHead, ContextExists | PromptFailed>
    /**
     * Creates a context whose log is that of another up to an event, with its owner; another agent brings its own system prompt
     * (S004-F11…F13).
     */
    readonly fork: (
      name: ContextName,
      agent: Agent,
      terms: ForkTerms
    ) => InProject<ContextHead, ContextExists | PromptFailed | ForkRefused>
    /** Creates several forks at the same event; forks of an empty context begin as it did. */
    readonly forkAll: (
      names: ReadonlyArray<ContextName>,
      agent: Agent,
      terms: ForkTerms
    ) => InProject<ReadonlyArray<ContextHead>, ContextExists | PromptFailed | ForkRefused>
  }
>()("@tropism/server/dispatch/ContextBeginnings") {
  static readonly layer = Layer.effect(
    ContextBeginnings,
    Effect.gen(function* () {
      const contexts = yield* Contexts
      const projects = yield* Projects

      /** Returns the first events that an agent brings into a context: model settings, guard, context window and system prompt. */
      const firstWords = Effect.fnUntraced(function* (agent: Agent) {
        const settings = firstSettings(agent)
        if (agent.systemPrompt === null) return settings
        const scope = {
          event: null,
          events: [],
          object: null,
          relationship: null,
          input: null,
          steps: {},
          iteration: 1,
          agent,
          project: yield* projects.find
        }
        const event: NewEvent = {
          type: "SystemPromptEvent",
          content: yield* renderPrompt(agent.systemPrompt, scope)
        }
        return [...settings, event]
      })

      const begin = Effect.fnUntraced(function* (head: ContextHead, events: ReadonlyArray<NewEvent>) {
        const logged = yield* contexts.append(head.name, events)
        return { ...head, eventCount: head.eventCount + logged.length }
      })

      const open = Effect.fn("ContextBeginnings.open")(function* (
        name: ContextName,
        agent: Agent,
        owner: UserId | null = null
      ) {
        const head = yield* contexts.create(name, agent.id, undefined, owner)
        return yield* begin(head, yield* firstWords(agent))
      })

      const forkAll = Effect.fn("ContextBeginnings.forkAll")(function* (
        names: ReadonlyArray<ContextName>,
        agent: Agent,
        { at, from }: ForkTerms
      ) {
        if (at === undefined && from.eventCount === 0)
          return yield* Effect.forEach(names, (name) => open(name, agent, from.owner))
        const last = at ?? from.eventCount
        if (last < 1 || last > from.eventCount) return yield* new ForkRefused({ detail: noEvent(from, last) })
        const shared = yield* contexts.loadUpTo(from.name, last)
        const prompt = agent.id === from.agentId ? [] : yield* firstWords(agent)
        return yield* Effect.forEach(names, (name) =>
          Effect.flatMap(contexts.create(name, agent.id, { name: from.name, at: last }, from.owner), (head) =>
            begin(head, [...forkEvents(from.name, last, shared), ...prompt])
          )
        )
      })

      const fork = Effect.fn("ContextBeginnings.fork")(function* (
        name: ContextName,
        agent: Agent,
        { at, from }: ForkTerms
      ) {
        const [head] = yield* forkAll([name], agent, { from, at: at ?? from.eventCount })
        return head ?? (yield* Effect.die(new Error(`The fork ${name} was not made`)))
      })

      return ContextBeginnings.of({ open, fork, forkAll })
    })
  )
}

const noEvent = ({ eventCount, name }: ContextHead, number: number): string =>
  eventCount === 0
    ? `The context ${name} has no event yet`
    : `The context ${name} has the events 1 to ${eventCount}, and no ${number}`

/** Returns the fork's own first events: its origin, and the end of whatever was open there. */
const forkEvents = (from: ContextName, at: number, shared: ReducedContext): ReadonlyArray<NewEvent> => {
  const below = (id: typeof shared.lastEventId) =>
    Option.match(id, { onNone: () => ({}), onSome: (parentEventId) => ({ parentEventId }) })
  const turn = below(shared.agentTurnStartedAtEventId)
  return [
    { type: "ContextForkedEvent", from, at, ...below(shared.lastEventId) },
    ...forkClosing(shared).map((event): NewEvent =>
      event.type === "SessionStartedEvent" ? event : { ...event, ...turn }
    )
  ]
}
