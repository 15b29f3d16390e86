/**
 * A tool that a person, or a program of theirs, calls for themselves.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Who calls comes with the call and stands in no argument. What a tool does
 * happens in the transaction that records it; only what must wait for others is
 * done behind it.
 */
import type { Role } from "@tropism/api/authorization"
import type { ProjectId, ToolCallId, UserId } from "@tropism/domain/ids"
import { Context, Effect, type Schema } from "effect"
import type { ProjectTransaction } from "../database/database.ts"
import type { ChangeRefused } from "../graph/refused.ts"
import { inputSchemaOf, read } from "./read-arguments.ts"
import type { GateDecision, Read, ToolFailed } from "./tool-effect.ts"

/** A person or program that calls tools for itself, through a door of its own. */
export interface PersonPrincipal {
  readonly projectId: ProjectId
  readonly userId: UserId
  readonly role: Role
}

/** One call that a person makes. */
export interface PersonCall {
  readonly principal: PersonPrincipal
  readonly id: ToolCallId
}

/** What a call came to. */
export interface PersonEffect {
  readonly result: Schema.Json
  /** Of a change; absent, the tool changes nothing in the graph. */
  readonly decision?: GateDecision | null
  readonly reads?: ReadonlyArray<Read>
  /** It came to nothing, and what it wrote to say so is kept. */
  readonly isError?: boolean
  /** What is done once the call is on record; its answer is told in place of the result. */
  readonly afterwards?: Effect.Effect<Schema.Json>
}

/** What a program may expect of a tool before it calls it; hints that the protocol defines. */
export interface ToolHints {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

type Shape = { readonly type: "object"; readonly [key: string]: unknown }

/** A tool as MCP lists it. */
export interface ListedTool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Shape
  readonly outputSchema?: Shape
  readonly annotations: ToolHints
  /** Whether a client of MCP's revision 2025-11-25 may ask for a task instead of an answer. */
  readonly execution?: { readonly taskSupport: "optional" }
}

export interface PersonTool extends ListedTool {
  /** What its caller must be at least. */
  readonly role: Role
  readonly perform: (
    args: Schema.Json,
    call: PersonCall
  ) => Effect.Effect<PersonEffect, ChangeRefused | ToolFailed, ProjectTransaction>
}

const hints = { destructiveHint: false, openWorldHint: false }

/** It only looks. */
export const reads: ToolHints = { ...hints, readOnlyHint: true, idempotentHint: true }

/** It adds something, each time that it is called. */
export const adds: ToolHints = { ...hints, readOnlyHint: false, idempotentHint: false }

/** It brings something into a state; twice is as once. */
export const sets: ToolHints = { ...hints, readOnlyHint: false, idempotentHint: true }

/** It ends or takes away something; twice is as once. */
export const takesAway: ToolHints = { ...sets, destructiveHint: true }

/** A tool whose arguments are read as its schema says before it does anything. */
export const personTool = <S extends Schema.Top & Schema.ConstraintDecoder<unknown>>(
  { arguments: schema, ...tool }: Omit<PersonTool, "inputSchema" | "perform"> & { readonly arguments: S },
  perform: (
    args: S["Type"],
    call: PersonCall
  ) => Effect.Effect<PersonEffect, ChangeRefused | ToolFailed, ProjectTransaction>
): PersonTool => ({
  ...tool,
  inputSchema: inputSchemaOf(schema),
  perform: (args, call) => Effect.flatMap(read(schema, args), (asked) => perform(asked, call))
})

/** The port by which a person's tools reach the stages to the left: agents, their runs, and what they ask. */
export class AgentDesk extends Context.Service<
  AgentDesk,
  {
    /** The tools of the `agents` server; no agent has any of them. */
    readonly tools: ReadonlyArray<PersonTool>
  }
>()("@tropism/server/tool/AgentDesk") {}
