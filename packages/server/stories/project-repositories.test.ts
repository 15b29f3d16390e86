/**
 * What reads a project's rows cannot be called where no project's transaction is open: it does not compile.
 *
 * `npm run check` holds the types; a member that needs no transaction any more
 * is a complaint there until it is named here with its reason.
 */
import { describe, expect, expectTypeOf, layer } from "@effect/vitest"
import { Cause, Effect, Exit, Layer } from "effect"
import type { Agents } from "../src/agents/agents.ts"
import type { Contexts } from "../src/contexts/contexts.ts"
import type { Passages } from "../src/contexts/passages.ts"
import type { Versions } from "../src/agents/versions.ts"
import type { Conversations } from "../src/chat/conversations.ts"
import type { ProjectTransaction } from "../src/database/database.ts"
import { Members, type Projects } from "../src/tenancy/projects.ts"
import type { Webhooks } from "../src/reactions/webhooks.ts"
import type { Gateway } from "../src/graph/gateway.ts"
import type { Objects } from "../src/graph/objects.ts"
import type { Provenances } from "../src/graph/provenance.ts"
import type { Relationships } from "../src/graph/relationships.ts"
import type { ProcessingLog } from "../src/runs/processing-log.ts"
import type { Tasks } from "../src/review/tasks.ts"
import type { Todos } from "../src/review/todos.ts"
import type { Undos } from "../src/review/undo.ts"
import type { McpServers } from "../src/tools/external-mcp/servers.ts"
import type { ToolCalls } from "../src/tools/tool-calls.ts"
import { serverSql } from "../testing/server-sql.ts"

/** What a member needs before it can be run. */
type Needed<Member> = Member extends (...args: never) => Effect.Effect<unknown, unknown, infer R>
  ? R
  : Member extends Effect.Effect<unknown, unknown, infer R>
    ? R
    : never

/** The members of a service that run without a project's transaction. */
type Free<Service> = {
  [Name in keyof Service]: ProjectTransaction extends Needed<Service[Name]> ? never : Name
}[keyof Service]

/** All of these, and each needs the transaction but for those named. */
type Rows = {
  [Name in keyof Repositories]: Free<Repositories[Name]>
}

interface Repositories {
  readonly agents: Agents["Service"]
  readonly contexts: Contexts["Service"]
  readonly conversations: Conversations["Service"]
  readonly gateway: Gateway["Service"]
  readonly mcpServers: McpServers["Service"]
  readonly members: Members["Service"]
  readonly objects: Objects["Service"]
  readonly passages: Passages["Service"]
  readonly processingLog: ProcessingLog["Service"]
  readonly projects: Projects["Service"]
  readonly provenances: Provenances["Service"]
  readonly relationships: Relationships["Service"]
  readonly tasks: Tasks["Service"]
  readonly todos: Todos["Service"]
  readonly toolCalls: ToolCalls["Service"]
  readonly undos: Undos["Service"]
  readonly versions: Versions["Service"]
  readonly webhooks: Webhooks["Service"]
}

interface Exceptions {
  /** From the memory of the program, by the project's id. */
  readonly agents: "remembered"
  /** Plans and wake-ups that touch no row, each with the project in its arguments. */
  readonly contexts: "plan" | "grown" | "keeping"
  readonly conversations: never
  /** Goes into a batch, which has the transaction, with the project in its arguments. */
  readonly gateway: "submit"
  readonly mcpServers: never
  readonly members: never
  readonly objects: never
  readonly passages: never
  /** The retention of all projects, which answers a number. */
  readonly processingLog: "forget"
  /** What makes a project has none yet; the list answers names of those that it is given. */
  readonly projects: "create" | "list"
  readonly provenances: never
  readonly relationships: never
  readonly tasks: never
  readonly todos: never
  /** A part of an append, with the project in its arguments. */
  readonly toolCalls: "keeping"
  readonly undos: never
  readonly versions: never
  /** A delivery names its webhook and no project. */
  readonly webhooks: "find"
}

layer(Members.layer.pipe(Layer.provide(serverSql)))((it) => {
  describe("Requirement: project-scoped repositories by type", () => {
    it.effect("what reads a project's rows does not compile without its transaction, and does not run", () =>
      Effect.gen(function* () {
        expectTypeOf<Rows>().toEqualTypeOf<Exceptions>()
        const members = yield* Members
        const forgotten = members.list(undefined, 1)
        expectTypeOf(forgotten).not.toExtend<Effect.Effect<unknown>>()
        const exit = yield* Effect.exit(forgotten as Effect.Effect<unknown>)
        expect(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "it ran").toContain("ProjectTransaction")
      })
    )
  })
})
