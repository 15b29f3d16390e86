/**
 * `tropism agents export`: agents as YAML files that apply back without a change.
 */
import type { Agent } from "@tropism/domain/agent"
import { definitionOf, leanAgent } from "@tropism/domain/agent-version"
import { Effect, FileSystem, Option, Path, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { fileFlag } from "../file-word.ts"
import { type Access, inProject } from "../access.ts"
import { agentsYaml, agentYaml } from "../agent-yaml.ts"
import { findAgent, readAgents } from "../agents-by-name.ts"
import { failure } from "../failure.ts"
import { printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { renderTable } from "../terminal/table.ts"
import { placeOf, writeWholeFile } from "../whole-file.ts"

const flags = {
  agents: Argument.String("agent").pipe(
    Argument.withDescription("Names or ids of the agents to export (default: all)"),
    Argument.variadic()
  ),
  output: fileFlag("output").pipe(
    Flag.withAlias("o"),
    Flag.withMetavar("<folder or ->"),
    Flag.withDescription("The folder for one file per agent (default: -, standard output)"),
    Flag.optional
  )
}

export const exportCommand = Command.make("export", flags, ({ agents, output }) =>
  inProject((access) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const chosen = yield* chooseAgents(access, agents)
      const folder = Option.getOrElse(output, () => "-")
      if (folder === "-")
        return yield* printOr(
          chosen.map((agent) => leanAgent(definitionOf(agent))),
          screen.print(agentsYaml(chosen).trimEnd())
        )
      const written = yield* writeFiles(folder, chosen)
      yield* printOr(
        written,
        screen.print(
          ...renderTable(
            written,
            [
              { title: "FILE", cell: ({ file }) => file },
              { title: "OUTCOME", cell: ({ outcome }) => outcome }
            ],
            { paint: screen.paint, width: yield* screen.width }
          )
        )
      )
    })
  )
).pipe(
  Command.withDescription("Export agents as YAML for apply"),
  Command.withExamples([
    { command: "tropism agents export -o agents/", description: "Write one file per agent" }
  ])
)

const chooseAgents = (access: Access, references: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    if (references.length > 0)
      return yield* Effect.forEach(references, (reference) => findAgent(access, reference))
    const all = yield* readAgents(access)
    if (all.length === 0) return yield* failure("The project has no agents to export.")
    return all.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  })

/** Writes a file for each agent; one that says the same already is left alone. */
const writeFiles = (folder: string, agents: ReadonlyArray<Agent>) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    return yield* Effect.forEach(agents, (agent) =>
      Effect.gen(function* () {
        const [file, text] = [path.join(folder, `${agent.name}.yaml`), agentYaml(agent)]
        const before = yield* Effect.orElseSucceed(files.readFileString(file), () => undefined)
        if (before === text) return { file, outcome: "unchanged" as const }
        yield* Effect.mapError(files.makeDirectory(folder, { recursive: true }), () =>
          failure(`Cannot create the folder ${folder}. Check its permissions.`)
        )
        const content = Stream.make(new TextEncoder().encode(text))
        yield* writeWholeFile({ content, place: yield* placeOf(file) })
        return { file, outcome: before === undefined ? ("created" as const) : ("updated" as const) }
      })
    )
  })
