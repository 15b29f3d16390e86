/**
 * Agents, their versions, and the manual trigger; what they have handled stands in `processing-api.ts`.
 */
import { Agent, AgentInput, AgentPatch, TriggerType } from "@tropism/domain/agent"
import { AgentDay, AgentModelUse } from "@tropism/domain/budget"
import { AgentId, ProjectId, RunId, Timestamp } from "@tropism/domain/ids"
import { Run, RunStatus } from "@tropism/domain/run"
import { SchedulePreview } from "@tropism/domain/schedule"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { expectedVersion, ifMatch } from "./expected-version.ts"
import { Page, PageQuery, told } from "./page.ts"
import {
  Conflict,
  Forbidden,
  InvalidInput,
  NotFound,
  PreconditionFailed,
  TooManyRequests
} from "./problems.ts"

/** What a trigger may say of the run beside its input: an object that has no other members is this, and nothing of it the input. */
export const TriggerOptions = Schema.Struct({
  input: Schema.optional(
    Schema.Json.annotate({
      description:
        "What the run works on. Templates see it as `input`; where no template of the agent speaks of it, the model gets it as a message of its own after the prompt: text as it is, anything else as JSON."
    })
  )
})

/** The body of a trigger: the options, or the input itself, which is any other JSON (S002-R41). */
export const TriggerInput = Schema.Union([
  // First what keeps every member: an object of the caller's own is no options with members too many.
  Schema.Json.annotate({
    description:
      "The input itself: any JSON but an object whose members are all options. Text may be sent as text/plain."
  }),
  TriggerOptions
])

const usageDays = told(
  Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: 366 })),
  "How many days back, from 1 to 366; 30 by itself"
)

/** The fields of an agent that change, and the version that the caller changes. */
export const AgentChange = Schema.Struct({ ...AgentPatch.fields, ...expectedVersion }).annotate({
  identifier: "AgentChange"
})

/** Runs of an agent that its line tells of. */
export const agentHealthRuns = 10

/** How one agent fares, in one line. */
export const AgentHealth = Schema.Struct({
  id: AgentId,
  agentName: Schema.String,
  enabled: Schema.Boolean,
  /** Why a safeguard disabled it; null when none did. */
  disabledReason: Schema.NullOr(Schema.String),
  triggerType: TriggerType,
  /** Why no model can be asked for it, and what to set; null where one can. */
  modelMissing: Schema.NullOr(Schema.String),
  /** When its schedule fires next. */
  nextFireAt: Schema.NullOr(Timestamp),
  /** Its latest runs, at most ten, the newest first. */
  latest: Schema.Array(Schema.Struct({ id: RunId, status: RunStatus, createdAt: Timestamp })),
  /** Dollars of its model requests of the last seven days (UTC), where the price is known. */
  weekCostUsd: Schema.Finite,
  /** Suggestions of its present version on which a person decided; `rate` is the share that was taken as it was, null where there are none. */
  acceptance: Schema.Struct({ decided: Schema.Int, rate: Schema.NullOr(Schema.Finite) })
}).annotate({ identifier: "AgentHealth" })
export type AgentHealth = typeof AgentHealth.Type

/** The instants of a schedule that nobody has saved yet. */
export const ScheduleFires = Schema.Struct({
  fires: SchedulePreview.fields.fires
}).annotate({ identifier: "ScheduleFires" })

const project = { projectId: ProjectId }
const agent = { projectId: ProjectId, agentId: AgentId }

export class AgentsApi extends HttpApiGroup.make("agents")
  .add(
    HttpApiEndpoint.get("list", "/agents", {
      params: project,
      query: PageQuery,
      success: Page(Agent),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.post("create", "/agents", {
      params: project,
      payload: AgentInput,
      success: Agent.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    /** How each agent fares, the newest agent first. */
    HttpApiEndpoint.get("health", "/agents/health", {
      params: project,
      query: { ...PageQuery, agentId: told(AgentId, "Only this agent") },
      success: Page(AgentHealth),
      error: [NotFound, InvalidInput]
    }),
    /** When a schedule would fire next, whoever had it; nothing is saved. */
    HttpApiEndpoint.get("fires", "/agents/fires", {
      params: project,
      query: {
        cronSchedule: Schema.String.check(Schema.isBetweenLength(1, 200)).annotate({
          description: "A cron expression of five fields, e.g. 0 9 * * 1-5"
        }),
        timezone: told(
          Schema.String.check(Schema.isBetweenLength(1, 100)),
          "An IANA zone, e.g. Europe/Berlin; UTC by itself"
        )
      },
      success: ScheduleFires,
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/agents/:agentId", { params: agent, success: Agent, error: NotFound }),
    HttpApiEndpoint.patch("update", "/agents/:agentId", {
      params: agent,
      headers: ifMatch,
      payload: AgentChange,
      success: Agent,
      error: [NotFound, Forbidden, Conflict, InvalidInput, PreconditionFailed]
    }),
    HttpApiEndpoint.delete("delete", "/agents/:agentId", {
      params: agent,
      headers: ifMatch,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, InvalidInput, PreconditionFailed]
    }),
    /** When the schedule fires next; 404 for an agent without one. */
    HttpApiEndpoint.get("schedule", "/agents/:agentId/schedule", {
      params: agent,
      success: SchedulePreview,
      error: NotFound
    }),
    /** What the agent's own model requests used, on each of the last `days` on which there were any, today (UTC) first. */
    HttpApiEndpoint.get("usage", "/agents/:agentId/usage", {
      params: agent,
      query: { days: usageDays },
      success: Schema.Struct({ items: Schema.Array(AgentDay) }),
      error: [NotFound, InvalidInput]
    }),
    /** What the agent's answered model requests of the last `days` used, by model, the most tokens first. */
    HttpApiEndpoint.get("modelUsage", "/agents/:agentId/usage/models", {
      params: agent,
      query: { days: usageDays },
      success: Schema.Struct({ items: Schema.Array(AgentModelUse) }),
      error: [NotFound, InvalidInput]
    }),
    /** Waits for the run up to a bound; `wait=false`, or the bound passed: 202 with the run as it is. */
    HttpApiEndpoint.post("trigger", "/agents/:agentId/trigger", {
      params: agent,
      query: {
        wait: told(
          Schema.Literals(["true", "false"]),
          "false answers as soon as the run is queued; by itself its end is waited for, up to a bound"
        )
      },
      payload: [TriggerInput, Schema.String.pipe(HttpApiSchema.asText())],
      success: [Run, Run.annotate({ identifier: "UnfinishedRun" }).pipe(HttpApiSchema.status(202))],
      error: [NotFound, Forbidden, Conflict, InvalidInput, TooManyRequests]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
