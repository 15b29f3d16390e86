/**
 * The doors through which a whole project comes and goes: dump and restore.
 *
 * A dump is one moment of everything that belongs to a project, secrets apart. A
 * restore makes a new project of it, all of it or nothing, in which nothing acts
 * before a person says so.
 */
import { ProjectId } from "@tropism/domain/ids"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { told } from "./page.ts"
import { BodyTooLarge, Conflict, Forbidden, InvalidInput, NotFound, Unavailable } from "./problems.ts"
import { Project, ProjectInput } from "./system-api.ts"

/** The largest dump that a restore takes. */
export const dumpMaxBytes = 256 * 1024 * 1024 * 1024

/** One line of a restore's answer; the last is `finished` or `failed`. */
export const RestoreLine = Schema.Union([
  Schema.Struct({ type: Schema.Literal("progress"), done: Schema.Int, total: Schema.Int }),
  Schema.Struct({
    type: Schema.Literal("finished"),
    project: Project,
    rows: Schema.Int,
    /** Whether everything but the project itself has the id that it had; else all of them are new, in the same order. */
    keptIds: Schema.Boolean,
    /** Agents that were enabled when the dump was taken; here they are disabled until somebody enables them. */
    disabledAgents: Schema.Int
  }),
  Schema.Struct({ type: Schema.Literal("failed"), message: Schema.String })
]).annotate({ identifier: "RestoreLine" })
export type RestoreLine = typeof RestoreLine.Type

export class DumpsApi extends HttpApiGroup.make("dumps")
  .add(
    /**
     * The whole project as lines, as it is in one moment. The header tropism-rows says about how many will come. The
     * last line has the digest of all before it; a dump that cannot be finished ends with a line that has an `error` and, for programs, its `reason`.
     */
    HttpApiEndpoint.get("dump", "/api/projects/:projectId/dump", {
      params: { projectId: ProjectId },
      success: HttpApiSchema.StreamUint8Array({ contentType: "application/x-ndjson" }),
      error: [NotFound, Forbidden, Unavailable]
    }),
    /** Receives a dump, judges it whole, and makes a new project of it. For the server's admin. */
    HttpApiEndpoint.post("restoreDump", "/api/restore", {
      query: {
        id: told(
          ProjectId,
          "An id for the new project, so that the sender knows it whatever happens to the answer"
        ),
        name: told(ProjectInput.fields.name, "What it is called, instead of what the dumped one was")
      },
      payload: HttpApiSchema.StreamUint8Array({
        contentType: "application/octet-stream",
        maxBytes: dumpMaxBytes
      }),
      success: HttpApiSchema.StreamNdjson({ schema: RestoreLine }),
      error: [Forbidden, Conflict, InvalidInput, BodyTooLarge]
    })
  )
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
