/**
 * Agents' definitions over time and from files: their versions, and `apply`.
 */
import { Agent } from "@tropism/domain/agent"
import {
  AgentVersionDiff,
  AgentVersionRecord,
  AgentVersionSummary,
  AppliedAgent,
  ApplyInput
} from "@tropism/domain/agent-version"
import { AgentId, ProjectId } from "@tropism/domain/ids"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { ifMatch } from "./expected-version.ts"
import { Page, PageQuery, told } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound, PreconditionFailed } from "./problems.ts"

const VersionNumber = Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1))

const agent = { projectId: ProjectId, agentId: AgentId }
const version = { ...agent, version: VersionNumber }

export class DefinitionsApi extends HttpApiGroup.make("definitions")
  .add(
    /** Makes agents what these definitions say, by name, all of them or none. */
    HttpApiEndpoint.post("apply", "/agents/apply", {
      params: { projectId: ProjectId },
      payload: ApplyInput,
      success: Schema.Struct({ dryRun: Schema.Boolean, agents: Schema.Array(AppliedAgent) }),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.get("versions", "/agents/:agentId/versions", {
      params: agent,
      query: PageQuery,
      success: Page(AgentVersionSummary),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.get("version", "/agents/:agentId/versions/:version", {
      params: version,
      success: AgentVersionRecord,
      error: NotFound
    }),
    /** What the version changed; `from` compares with another one than the version before. */
    HttpApiEndpoint.get("diff", "/agents/:agentId/versions/:version/diff", {
      params: version,
      query: { from: told(VersionNumber, "The version to compare with; the one before by itself") },
      success: AgentVersionDiff,
      error: [NotFound, InvalidInput]
    }),
    /** Makes a new version that says what an old one said; whether the agent is enabled stays as it is. If-Match names the agent's present version. */
    HttpApiEndpoint.post("restore", "/agents/:agentId/versions/:version/restore", {
      params: version,
      headers: ifMatch,
      success: Agent,
      error: [NotFound, Forbidden, Conflict, InvalidInput, PreconditionFailed]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
