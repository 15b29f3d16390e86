/**
 * The demo: this project's own dependencies as a graph, and three agents at work on it.
 *
 * On a new data folder it makes the project `Demo`, its agents and the import.
 * Every step may be repeated: a start after a kill goes on with what is
 * missing. Agents that are there already are left as they are, so what a person
 * changed about them outlives a restart.
 */
import { Effect, Option } from "effect"
import type { Project } from "@tropism/api/system-api"
import type { ApiClient } from "@tropism/client/client"
import type { Connection } from "@tropism/client/connection"
import { type Access, accessTo, readPages } from "./access.ts"
import { readAgentFiles } from "./agent-files.ts"
import { readAgents } from "./agents-by-name.ts"
import { applyAgents } from "./apply-agents.ts"
import { type Checkout, findDemoLockfile } from "./checkout.ts"
import { failure } from "./failure.ts"
import { importFile, summarySentence } from "./import-file.ts"
import { Screen } from "./terminal/screen.ts"

const demoName = "Demo"

/** Finds the demo's project or makes it; none when the server has other projects, which the demo must not touch. */
export const openDemo = (client: ApiClient, connection: Connection) =>
  Effect.gen(function* () {
    const { items: projects } = yield* readPages((query) => client.projects.list({ query }), Infinity)
    const found = projects.find((project) => project.name === demoName)
    if (found) return Option.some(accessTo(client, connection, found))
    if (projects.length > 0) return Option.none<Access>()
    const made: Project = yield* client.projects.create({ payload: { name: demoName } })
    return Option.some(accessTo(client, connection, made))
  })

/** Makes the demo's agents and imports the lockfile. */
export const prepareDemo = (access: Access, checkout: Checkout) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const definitions = yield* readAgentFiles(checkout.demoFolder)
    const present = new Set((yield* readAgents(access)).map((agent) => agent.name))
    const missing = definitions.filter(({ input }) => !present.has(input.name))
    const applied = yield* applyAgents(access, missing)
    if (applied.length > 0) yield* screen.print(`Agents: ${applied.map((agent) => agent.name).join(", ")}.`)
    const lockfile = yield* findDemoLockfile(checkout)
    if (lockfile === undefined) {
      return yield* failure(
        `The demo found no package-lock.json next to the program. Import your own with "tropism import FILE".`
      )
    }
    const { summary } = yield* importFile(access, { file: lockfile, format: "package-lock" })
    yield* screen.print(`Imported ${lockfile}. ${summarySentence(summary)}`)
  })
