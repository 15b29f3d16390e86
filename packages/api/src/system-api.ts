/**
 * Is the server alive and ready, and who am I: the routes outside any project.
 */
import { ProjectId, Timestamp } from "@tropism/domain/ids"
import { NameText } from "@tropism/domain/name-text"
import { ProjectSettings, ProjectSettingsPatch } from "@tropism/domain/project-settings"
import { Stop } from "@tropism/domain/kill-switch"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { alsoUnchanged } from "./also-unchanged.ts"
import { Authorization, Principal, RequestJudgement } from "./authorization.ts"
import { ifMatch } from "./expected-version.ts"
import { Page, PageQuery } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound, PreconditionFailed, Unavailable } from "./problems.ts"

export const Health = Schema.Struct({ status: Schema.Literal("ok"), version: Schema.String })

/** Routes that need no token. `/ready` is 200 only while the database answers and can be written. */
export class SystemApi extends HttpApiGroup.make("system").add(
  HttpApiEndpoint.get("health", "/health", { success: Health }),
  HttpApiEndpoint.get("ready", "/ready", { success: Health, error: Unavailable })
) {}

export const Project = Schema.Struct({ id: ProjectId, name: Schema.String, createdAt: Timestamp }).annotate({
  identifier: "Project"
})
export type Project = typeof Project.Type

/** A project and what stops its agents: its own kill switch, else the server's. */
export const ProjectState = Schema.Struct({ ...Project.fields, stopped: Schema.NullOr(Stop) }).annotate({
  identifier: "ProjectState"
})
export type ProjectState = typeof ProjectState.Type

export const ProjectInput = Schema.Struct({
  name: NameText("A project's name", 200)
})

/** Who is asking, and what to do where that is nobody's member yet. */
export const Me = Schema.Struct({ ...Principal.fields, advice: Schema.optional(Schema.String) }).annotate({
  identifier: "Me"
})
export type Me = typeof Me.Type

export class ProjectsApi extends HttpApiGroup.make("projects")
  .add(
    HttpApiEndpoint.get("me", "/api/me", { success: Me }),
    HttpApiEndpoint.get("list", "/api/projects", {
      query: PageQuery,
      success: Page(Project),
      error: [InvalidInput]
    }),
    HttpApiEndpoint.post("create", "/api/projects", {
      payload: ProjectInput,
      success: Project.pipe(HttpApiSchema.status(201)),
      error: [Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/api/projects/:projectId", {
      params: { projectId: ProjectId },
      success: ProjectState,
      error: NotFound
    }),
    /** Agents, tokens and addresses go by the id, which stays. */
    HttpApiEndpoint.patch("rename", "/api/projects/:projectId", {
      params: { projectId: ProjectId },
      payload: ProjectInput,
      success: Project,
      error: [NotFound, Forbidden, InvalidInput]
    }),
    HttpApiEndpoint.get("settings", "/api/projects/:projectId/settings", {
      params: { projectId: ProjectId },
      success: ProjectSettings,
      error: NotFound
    }).annotateMerge(alsoUnchanged),
    /** Holds from the next event, and for running runs from their next model request. */
    HttpApiEndpoint.patch("changeSettings", "/api/projects/:projectId/settings", {
      params: { projectId: ProjectId },
      headers: ifMatch,
      payload: ProjectSettingsPatch,
      success: ProjectSettings,
      error: [NotFound, Forbidden, InvalidInput, PreconditionFailed]
    })
  )
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
