/**
 * `tropism agents`: which agents a project has, and the commands about them.
 */
import type { Agent } from "@tropism/domain/agent"
import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import { inProject } from "../access.ts"
import { readAgents } from "../agents-by-name.ts"
import { printRecords } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { formatAge } from "../terminal/time.ts"
import { scheduleCommand } from "./agent-schedule.ts"
import { diffCommand, restoreCommand, versionsCommand } from "./agent-versions.ts"
import { disableCommand, enableCommand } from "./agent-switches.ts"
import { applyCommand } from "./apply.ts"
import { exportCommand } from "./export-agents.ts"

const list = Command.make("agents", {}, () =>
  inProject((access) =>
    Effect.gen(function* () {
      const { paint } = yield* Screen
      const now = yield* Clock.currentTimeMillis
      yield* printRecords({
        records: yield* readAgents(access),
        nothing: `The project has no agents yet. Add one with "tropism agents apply -f FILE".`,
        columns: [
          { title: "AGENT", cell: (agent) => agent.name },
          { title: "VERSION", align: "right", cell: (agent) => String(agent.version) },
          { title: "MODE", cell: (agent) => agent.executionMode },
          { title: "TRIGGER", shrinks: "end", cell: triggerText },
          {
            title: "MODEL",
            cell: (agent) =>
              agent.model === null ? "the server's" : `${agent.model.provider}:${agent.model.name}`
          },
          {
            title: "STATE",
            shrinks: "end",
            cell: stateText,
            paint: (agent) => (agent.enabled ? paint.good : paint.waiting)
          },
          {
            title: "AGE",
            align: "right",
            cell: (agent) => formatAge(agent.updatedAt, now),
            paint: () => paint.dim
          }
        ]
      })
    })
  )
).pipe(
  Command.withDescription("List the agents; apply, export and compare definitions"),
  Command.withExamples([
    { command: "tropism agents apply -f agents/", description: "Create or update all agents in a folder" }
  ])
)

export const agentsCommand = list.pipe(
  Command.withSubcommands([
    applyCommand,
    exportCommand,
    versionsCommand,
    diffCommand,
    restoreCommand,
    scheduleCommand,
    enableCommand,
    disableCommand
  ])
)

const triggerText = (agent: Agent): string => {
  switch (agent.triggerType) {
    case "schedule":
      return `schedule ${agent.cronSchedule ?? ""} ${agent.timezone}`
    case "reaction": {
      const config = agent.reactionConfig
      if (config === null) return "reaction"
      const objects = config.objectTypes.length === 0 ? "all objects" : config.objectTypes.join(", ")
      return [
        ...(config.events.length === 0 ? [] : [`${objects} ${config.events.join(", ")}`]),
        ...(config.mcpEvents ?? []).map(({ name, server }) => `${server} ${name}`)
      ].join("; ")
    }
    case "manual":
    case "webhook":
      return agent.triggerType
  }
}

const stateText = (agent: Agent): string => {
  if (agent.enabled)
    return agent.nextFireAt === null
      ? "enabled"
      : `enabled, next ${agent.nextFireAt.slice(0, 16).replace("T", " ")} UTC`
  return agent.disabledReason === null ? "disabled" : `disabled: ${agent.disabledReason}`
}
