/**
 * `tropism agents apply`: makes agents what files say, or says what that would change.
 */
import { faultText } from "@tropism/client/failure-sentence"
import type { AppliedAgent } from "@tropism/domain/agent-version"
import { Effect, Path } from "effect"
import { Command, Flag } from "effect/cli"
import { fileFlag } from "../file-word.ts"
import { type Access, inProject } from "../access.ts"
import { type AgentFile, readAgentFiles } from "../agent-files.ts"
import { applyAgents } from "../apply-agents.ts"
import { differenceLines } from "../difference-lines.ts"
import { exitCodes } from "../exit-codes.ts"
import { failure } from "../failure.ts"
import { printOr } from "../print-records.ts"
import { paintState } from "../terminal/paint.ts"
import { Screen } from "../terminal/screen.ts"
import { renderTable } from "../terminal/table.ts"
import { printable } from "../terminal/text.ts"

const flags = {
  file: fileFlag("file").pipe(
    Flag.withAlias("f"),
    Flag.withMetavar("<file or folder>"),
    Flag.withDescription("Agent definitions in YAML or JSON, or a folder of them")
  ),
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDescription("Only show what would change, field by field"),
    Flag.withDefault(false)
  ),
  prune: Flag.Boolean("prune").pipe(
    Flag.withDescription("Delete applied agents that no file defines any more; requires --yes"),
    Flag.withDefault(false)
  ),
  yes: Flag.Boolean("yes").pipe(
    Flag.withDescription("Confirm the deletions of --prune"),
    Flag.withDefault(false)
  )
}

export const applyCommand = Command.make("apply", flags, ({ dryRun, file, prune, yes }) =>
  Effect.gen(function* () {
    // Files are read first: a mistake in one is told even when no server answers.
    const definitions = yield* readAgentFiles((yield* Path.Path).resolve(file))
    yield* inProject((access) =>
      Effect.gen(function* () {
        if (prune && !dryRun && !yes) yield* refuseToPrune(access, definitions)
        yield* printApplied(yield* applyAgents(access, definitions, { dryRun, prune }), dryRun)
      })
    )
  })
).pipe(
  Command.withDescription("Create or update agents by name, all or none; unchanged agents are left alone"),
  Command.withShortDescription("Create or update agents by name, all or none"),
  Command.withExamples([
    {
      command: "tropism agents apply -f agents/ --dry-run",
      description: "Show what would change, without applying it"
    }
  ])
)

/** Names what would be deleted; nothing to delete is nothing to ask. */
const refuseToPrune = (access: Access, definitions: ReadonlyArray<AgentFile>) =>
  Effect.gen(function* () {
    const told = yield* applyAgents(access, definitions, { dryRun: true, prune: true })
    const names = told.filter(({ outcome }) => outcome === "deleted").map(({ name }) => name)
    if (names.length > 0)
      return yield* failure(
        `Nothing was applied: --prune would delete ${names.join(", ")}. Confirm with --yes.`,
        exitCodes.usage
      )
  })

const printApplied = (applied: ReadonlyArray<AppliedAgent>, dryRun: boolean) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const lines = renderTable(
      applied,
      [
        { title: "AGENT", cell: (agent) => agent.name },
        { title: "VERSION", align: "right", cell: (agent) => String(agent.version) },
        {
          title: dryRun ? "WOULD BE" : "OUTCOME",
          cell: (agent) => agent.outcome,
          paint: (agent) => paintState(screen.paint, agent.outcome)
        }
      ],
      { paint: screen.paint, width: yield* screen.width }
    )
    const differences = applied
      .filter(({ outcome }) => outcome === "updated")
      .flatMap(({ name, changes }) => [name, ...differenceLines(changes, screen.paint)])
    const warnings = applied.flatMap(({ name, warnings: about }) =>
      about.map(({ message, pointer }) =>
        screen.paint.waiting(printable(`Warning: ${name}: ${faultText({ pointer, message })}`))
      )
    )
    yield* printOr(applied, screen.print(...lines, ...differences, ...warnings))
  })
