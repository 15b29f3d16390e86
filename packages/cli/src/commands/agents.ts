/**
 * `tropism agents`: which agents a project has, and `apply`, which makes them what files say.
 */
import type { Agent } from "@tropism/domain/agent"
import { Clock, Effect, Path } from "effect"
import { Command, Flag } from "effect/cli"
import { inProject } from "../access.ts"
import { readAgentFiles } from "../agent-files.ts"
import { readAgents } from "../agents-by-name.ts"
import { applyAgents } from "../apply-agents.ts"
import { printOr, printRecords } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { paintState } from "../terminal/paint.ts"
import { renderTable } from "../terminal/table.ts"
import { formatAge } from "../terminal/time.ts"

const list = Command.make("agents", {}, () =>
  inProject((access) =>
    Effect.gen(function* () {
      const { paint } = yield* Screen
      const now = yield* Clock.currentTimeMillis
      yield* printRecords({
        records: yield* readAgents(access),
        hasMore: false,
        nothing: `The project has no agent yet. "tropism agents apply -f FILE" adds one.`,
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
  Command.withDescription("List the agents, or apply definitions from files"),
  Command.withExamples([
    { command: "tropism agents apply -f agents/", description: "Create or update every agent of a folder" }
  ])
)

const apply = Command.make(
  "apply",
  {
    file: Flag.String("file").pipe(
      Flag.withAlias("f"),
      Flag.withMetavar("<file or folder>"),
      Flag.withDescription("Agent definitions in YAML or JSON, or a folder of them")
    )
  },
  ({ file }) =>
    Effect.gen(function* () {
      // Files are read first: a mistake in one is told even when no server answers.
      const definitions = yield* readAgentFiles((yield* Path.Path).resolve(file))
      yield* inProject((access) =>
        Effect.gen(function* () {
          const screen = yield* Screen
          const applied = yield* applyAgents(access, definitions)
          const lines = renderTable(
            applied,
            [
              { title: "AGENT", cell: (agent) => agent.name },
              { title: "VERSION", align: "right", cell: (agent) => String(agent.version) },
              {
                title: "OUTCOME",
                cell: (agent) => agent.outcome,
                paint: (agent) => paintState(screen.paint, agent.outcome)
              }
            ],
            { paint: screen.paint, width: yield* screen.width }
          )
          yield* printOr(applied, screen.print(...lines))
        })
      )
    })
).pipe(Command.withDescription("Create or update agents by name; what is so already is left alone"))

export const agentsCommand = list.pipe(Command.withSubcommands([apply]))

const triggerText = (agent: Agent): string => {
  switch (agent.triggerType) {
    case "schedule":
      return `schedule ${agent.cronSchedule ?? ""} ${agent.timezone}`
    case "reaction": {
      const config = agent.reactionConfig
      if (config === null) return "reaction"
      return `${config.objectTypes.length === 0 ? "every object" : config.objectTypes.join(", ")} ${config.events.join(", ")}`
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
