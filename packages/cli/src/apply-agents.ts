/**
 * Makes the agents of a project what their definitions say, by name: all of them or none.
 *
 * The server decides and does it in one request; what it refuses is told with
 * the file in which it stands.
 */
import type { InputFault } from "@tropism/api/problems"
import { faultText } from "@tropism/client/failure-sentence"
import type { AppliedAgent } from "@tropism/domain/agent-version"
import { Effect, Predicate } from "effect"
import type { Access } from "./access.ts"
import type { AgentFile } from "./agent-files.ts"
import { type Failure, requestFailure, retold } from "./failure.ts"

export interface ApplyOptions {
  readonly dryRun?: boolean
  readonly prune?: boolean
}

export const applyAgents = (
  access: Access,
  definitions: ReadonlyArray<AgentFile>,
  options: ApplyOptions = {}
): Effect.Effect<ReadonlyArray<AppliedAgent>, Failure> =>
  definitions.length === 0
    ? Effect.succeed([])
    : access.client.definitions
        .apply({
          params: access.params,
          payload: { agents: definitions.map(({ input }) => input), ...options }
        })
        .pipe(
          Effect.map(({ agents }) => agents),
          Effect.mapError((error) =>
            inFiles(error, requestFailure(error, access.connection.url), definitions)
          )
        )

/** The faults that the server found in definitions, each with its file. */
const inFiles = (error: unknown, told: Failure, definitions: ReadonlyArray<AgentFile>): Failure => {
  if (!Predicate.hasProperty(error, "errors") || !Array.isArray(error.errors)) return told
  const sentences = error.errors.flatMap(({ message, pointer: whole }: InputFault) => {
    const [, index, pointer = ""] = /^\/agents\/(\d+)(\/.*)?$/.exec(whole) ?? []
    const at = definitions[Number(index)]?.place
    return at === undefined ? [] : [`${at}: ${faultText({ pointer, message })}`]
  })
  return sentences.length === 0 ? told : retold(told, `Nothing was applied. ${sentences.join("; ")}.`)
}
