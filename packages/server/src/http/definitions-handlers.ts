/**
 * Agents' definitions over time and from files.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { InvalidInput } from "@tropism/api/problems"
import type { AgentVersionSummary } from "@tropism/domain/agent-version"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agent/agents.ts"
import { Declarations, type DeclarationsRefused } from "../agent/declarations.ts"
import { Versions } from "../agent/versions.ts"
import { inProject, reading } from "./access.ts"
import { pageByNumber } from "./paging.ts"
import { definitionProblem, keepable, orNotFound } from "./refusals.ts"
import { onVersion, taggedLoosely } from "./conditions.ts"

const known = orNotFound("agent")
const knownVersion = orNotFound("version of this agent")

export const definitionsHandlers = HttpApiBuilder.group(Api, "definitions", (handlers) =>
  handlers.handleAll({
    apply: Effect.fn("http.definitions.apply")(function* ({ params, payload }) {
      yield* keepable(payload)
      const declarations = yield* Declarations
      const agents = yield* inProject(params.projectId, "admin", ({ userId }) =>
        Effect.mapError(declarations.apply(payload, userId), (refused) =>
          refused._tag === "DeclarationsRefused" ? faultsProblem(refused) : definitionProblem(refused)
        )
      )
      return { dryRun: payload.dryRun === true, agents }
    }),
    versions: Effect.fn("http.definitions.versions")(function* ({ params, query }) {
      const [agents, versions] = [yield* Agents, yield* Versions]
      return yield* reading(
        params.projectId,
        Effect.andThen(
          // Runs outlive their agent and name its versions: a deleted one is known by them.
          known(agents.version(params.agentId, 1)),
          pageByNumber(
            query,
            ({ version }: AgentVersionSummary) => version,
            (before, limit) => versions.list(params.agentId, before, limit)
          )
        )
      )
    }),
    version: Effect.fn("http.definitions.version")(function* ({ params }) {
      const versions = yield* Versions
      return yield* knownVersion(reading(params.projectId, versions.get(params.agentId, params.version)))
    }),
    diff: Effect.fn("http.definitions.diff")(function* ({ params, query }) {
      const versions = yield* Versions
      return yield* knownVersion(
        reading(params.projectId, versions.diff(params.agentId, query.from, params.version))
      )
    }),
    restore: Effect.fn("http.definitions.restore")(function* ({ params, headers }) {
      const versions = yield* Versions
      const restored = onVersion(headers, null, ({ expectedVersion }) =>
        inProject(params.projectId, "admin", ({ userId }) =>
          Effect.mapError(
            versions.restore(params.agentId, params.version, userId, expectedVersion),
            definitionProblem
          )
        )
      )
      return yield* Effect.flatMap(knownVersion(restored), taggedLoosely)
    })
  })
)

const faultsProblem = ({ faults }: DeclarationsRefused): InvalidInput => {
  const [first] = faults
  const others = faults.length > 1 ? `, and ${faults.length - 1} more` : ""
  return new InvalidInput({
    detail: first ? `${first.pointer}: ${first.message}${others}` : "The definitions cannot be right",
    errors: faults
  })
}
