/**
 * What must hold of the log for an event that somebody adds.
 *
 * Flow: **http** → dispatch → run → tool → task
 *
 * Judged in the transaction that keeps the event, with the log held, so that two
 * that are sent at once are judged one after the other.
 */
import { type InvalidInput, NotFound } from "@tropism/api/problems"
import { type ContextEventId, eventNumber, type NewEvent } from "@tropism/domain/context-event"
import { Effect } from "effect"
import { definedTool, type Workflow } from "@tropism/domain/context-config"
import { Agents } from "../agent/agents.ts"
import { findWorkflowFault } from "../agent/checked-definition.ts"
import { type ContextHead, Contexts } from "../agent/contexts.ts"
import { ProjectTransaction } from "../database/database.ts"
import { findMixedFault, findToolDefinitionFault } from "../tool/tool-definitions.ts"
import { ToolServers } from "../tool/tool-servers.ts"
import { invalid } from "./refusals.ts"

type NewTool = Extract<NewEvent, { readonly type: "DefineToolEvent" }>

/** Answers when nothing speaks against the event. */
export const makeJudgedEvent = Effect.gen(function* () {
  const agents = yield* Agents
  const contexts = yield* Contexts
  const toolServers = yield* ToolServers

  const judgeTool = Effect.fnUntraced(function* (
    { agentId, name: contextName }: ContextHead,
    event: NewTool
  ) {
    const mixed = findMixedFault(event)
    if (mixed) return yield* invalid(mixed.pointer, mixed.message)
    const tool = definedTool(event)
    const { projectId } = yield* ProjectTransaction
    yield* contexts.lock(contextName)
    const { config } = yield* contexts.load(contextName)
    if (tool === undefined) {
      if (config.tools.some(({ name }) => name === event.name)) return
      return yield* new NotFound({
        detail: `This context defines no tool ${event.name}: there is nothing to take back`
      })
    }
    const agent = yield* agents.get(agentId)
    const terms = {
      isLoop: false,
      maySpawn: (agent?.subAgents ?? []).length > 0,
      maySuggest: agent?.executionMode !== "execute"
    }
    const fault = findToolDefinitionFault(tool, {
      agentName: agent?.name ?? "of this context",
      defined: config.tools,
      offered: yield* toolServers.offered(projectId, agent?.tools ?? [], terms)
    })
    if (fault) return yield* invalid(fault.pointer, fault.message)
  })

  /** An agent may lose tools later: those of a step are compared with the agent's again when the step begins. */
  const judgeWorkflow = Effect.fnUntraced(function* ({ agentId }: ContextHead, workflow: Workflow) {
    const agent = yield* agents.get(agentId)
    // Nobody works for an agent that was deleted.
    const fault = agent && findWorkflowFault(agent, workflow)
    if (fault) return yield* invalid(fault.pointer, fault.message)
  })

  /** A log only grows, so an event that is there stays there. */
  const judgeParent = Effect.fnUntraced(function* ({ name }: ContextHead, parent: ContextEventId) {
    const [found] = yield* contexts.read(name, eventNumber(parent) - 1, 1)
    if (found?.id !== parent)
      return yield* invalid("/parentEventId", `The log has no event ${parent}`, "unknownParent")
  })

  const judgeOwn = (
    context: ContextHead,
    event: NewEvent
  ): Effect.Effect<void, InvalidInput | NotFound, ProjectTransaction> => {
    switch (event.type) {
      case "DefineToolEvent":
        return judgeTool(context, event)
      case "DefineWorkflowEvent":
        return judgeWorkflow(context, event)
      default:
        return Effect.void
    }
  }

  return (context: ContextHead, event: NewEvent) =>
    event.parentEventId === undefined
      ? judgeOwn(context, event)
      : Effect.andThen(judgeParent(context, event.parentEventId), judgeOwn(context, event))
})
