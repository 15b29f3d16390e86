/**
 * Calls tools for a person: checked by role, applied and recorded in one transaction.
 *
 * **Invariant** Every call of an existing tool is recorded, even a refused one. Identity is a field of the record and never an
 * argument (S003-R47, R48). Every fault is an answer; internals are never exposed. Only work that waits for others runs after the transaction.
 */
import { type Role, includesRole } from "@tropism/api/authorization"
import { direct } from "@tropism/domain/actor"
import type { ProjectId, ToolCallId, UserId } from "@tropism/domain/ids"
import { findFault, isJsonObject } from "@tropism/domain/json"
import { cutJson } from "@tropism/domain/json-cut"
import { growthNote, keptChars } from "@tropism/domain/kept-size"
import { shortened } from "@tropism/domain/text-beginning"
import { Context, Effect, Schema, Struct, Layer, Predicate } from "effect"
import { CrashPoint } from "../crash-point.ts"
import { type ProjectTransaction, Database } from "../database/database.ts"
import { type ChangeRefused, refused } from "../graph/change-refused.ts"
import { Gateway } from "../graph/gateway.ts"
import { Ids } from "../ids.ts"
import { toolLimits } from "../limits.ts"
import { inputSchemaOf, readArguments, isIdentity, bounded, noTool, unreadable } from "./arguments.ts"
import { Denials } from "./denials.ts"
import { applied, GraphEffects, type ChangingTool, wantedChange } from "./graph-effects.ts"
import * as Args from "./graph-tools.ts"
import { TodoEffects, type TodoToolName, todoTools } from "./todo-tools.ts"
import {
  type GateDecision,
  type Read,
  type ToolFailed,
  refusalText,
  type CallStatus,
  ToolCalls
} from "./tool-calls.ts"

/** A person or program that calls tools, and the endpoint it uses. */
export interface PersonPrincipal {
  readonly projectId: ProjectId
  readonly userId: UserId
  readonly role: Role
}

/** One call by a person. */
interface PersonCall {
  readonly principal: PersonPrincipal
  readonly id: ToolCallId
}

/** The effect of a call. */
interface PersonEffect {
  readonly result: Schema.Json
  /** Decision on a change; absent when the tool does not change the graph. */
  readonly decision?: GateDecision | null
  readonly reads?: ReadonlyArray<Read>
  /** The call failed, and its writes are kept. */
  readonly isError?: boolean
  /** Runs after the call is recorded; its answer replaces the result. */
  readonly afterwards?: Effect.Effect<Schema.Json>
}

/** Hints of the protocol about a tool's effects. */
interface ToolHints {
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
  /** Whether a client of MCP revision 2025-11-25 may request a task instead of an answer. */
  readonly execution?: { readonly taskSupport: "optional" }
}

interface PersonTool extends ListedTool {
  /** The caller's minimum role. */
  readonly role: Role
  readonly perform: (
    args: Schema.Json,
    call: PersonCall
  ) => Effect.Effect<PersonEffect, ChangeRefused | ToolFailed, ProjectTransaction>
}

const hints = { destructiveHint: false, openWorldHint: false }

/** Reads only. */
export const reads: ToolHints = { ...hints, readOnlyHint: true, idempotentHint: true }

/** Adds something with each call. */
export const adds: ToolHints = { ...hints, readOnlyHint: false, idempotentHint: false }

/** Sets a state; idempotent. */
export const sets: ToolHints = { ...hints, readOnlyHint: false, idempotentHint: true }

/** Ends or removes something; idempotent. */
export const takesAway: ToolHints = { ...sets, destructiveHint: true }

/** Returns a tool whose arguments are decoded by its schema before it runs. */
export const personTool = <S extends Schema.Top & Schema.ConstraintDecoder<unknown>>(
  { arguments: schema, ...tool }: Omit<PersonTool, "inputSchema" | "perform"> & { readonly arguments: S },
  perform: (
    args: S["Type"],
    call: PersonCall
  ) => Effect.Effect<PersonEffect, ChangeRefused | ToolFailed, ProjectTransaction>
): PersonTool => ({
  ...tool,
  inputSchema: inputSchemaOf(schema),
  perform: (args, call) => Effect.flatMap(readArguments(schema, args), (asked) => perform(asked, call))
})

/** Port from a person's tools to agents, their runs and their questions. */
export class AgentToolsPort extends Context.Service<
  AgentToolsPort,
  {
    /** The tools of the `agents` server; agents have none of them. */
    readonly tools: ReadonlyArray<PersonTool>
  }
>()("@tropism/server/tool/AgentToolsPort") {}

// The `graph` server's tools for a person; the changes are the caller's own.
//
// Arguments are decoded like those of agents. A person gives no confidence and never waits for approval, and may name the
// expected version. The reason is stored with the call, and so with the change.

/** Accepts null as absent: many models send null for what they leave out. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

/** Reads the current graph. */
const present = { backtest: null }

const expectedVersion = opt(
  Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
    description: "The version that you know: where it is another by now, nothing is changed"
  })
)

/** Arguments of a change that only agents have. */
const agentsOwn = ["confidence", "suggest"] as const

const said = <
  F extends Schema.Struct.Fields & { readonly confidence: Schema.Top; readonly suggest: Schema.Top }
>({
  fields
}: Schema.Struct<F>) => Struct.omit(fields, agentsOwn)

const changes = {
  create_object: {
    title: "Create an object",
    hints: adds,
    arguments: Schema.Struct(said(Args.CreateObjectArguments))
  },
  update_object: {
    title: "Change an object",
    hints: sets,
    arguments: Schema.Struct({ ...said(Args.UpdateObjectArguments), expectedVersion })
  },
  delete_object: {
    title: "Delete an object",
    hints: takesAway,
    arguments: Schema.Struct({ ...said(Args.DeleteObjectArguments), expectedVersion })
  },
  create_relationship: {
    title: "Relate two objects",
    hints: adds,
    arguments: Schema.Struct(said(Args.CreateRelationshipArguments))
  },
  update_relationship: {
    title: "Change a relationship",
    hints: sets,
    arguments: Schema.Struct({ ...said(Args.UpdateRelationshipArguments), expectedVersion })
  },
  delete_relationship: {
    title: "Delete a relationship",
    hints: takesAway,
    arguments: Schema.Struct({ ...said(Args.DeleteRelationshipArguments), expectedVersion })
  }
} as const satisfies Record<
  ChangingTool,
  {
    readonly title: string
    readonly hints: ToolHints
    readonly arguments: Schema.ConstraintDecoder<Said> & Schema.Top
  }
>

/** A person's arguments besides the change itself. */
interface Said {
  readonly reasoning?: string | null | undefined
  readonly expectedVersion?: number | null | undefined
}

const makeGraphPersonTools = Effect.gen(function* () {
  const effects = yield* GraphEffects
  const gateway = yield* Gateway

  /** Makes the caller's change; the call is its cause, so the reason can be found from the change. */
  const change = (tool: ChangingTool) =>
    Effect.fnUntraced(function* (args: Schema.Json, { id, principal }: PersonCall) {
      const known: Said = yield* readArguments<Schema.ConstraintDecoder<Said>>(changes[tool].arguments, args)
      const { expectedVersion: _known, ...asked } = args as Record<string, Schema.Json>
      const wanted = yield* wantedChange(tool, asked)
      const author = {
        actor: { actorType: "user" as const, actorId: principal.userId },
        cause: { ...direct, toolCallId: id }
      }
      const expected =
        typeof known.expectedVersion === "number" ? { expectedVersion: known.expectedVersion } : {}
      return applied(yield* gateway.apply({ ...wanted.change, ...expected }, author))
    })

  const looking = (
    name: "search_objects" | "get_object" | "neighbors",
    title: string,
    perform: PersonTool["perform"]
  ) => ({
    name,
    title,
    description: Args.graphTools[name].description,
    inputSchema: inputSchemaOf(Args.graphTools[name].arguments),
    annotations: reads,
    role: "viewer" as const,
    perform
  })

  return [
    looking("search_objects", "Search objects", (args) =>
      Effect.flatMap(readArguments(Args.SearchObjects, args), (asked) =>
        effects.searchObjects(asked, present)
      )
    ),
    looking("get_object", "Read an object", (args) =>
      Effect.flatMap(readArguments(Args.GetObject, args), (asked) => effects.getObject(asked, present))
    ),
    looking("neighbors", "Read what is around an object", (args) =>
      Effect.flatMap(readArguments(Args.Neighbors, args), (asked) => effects.neighbors(asked, present))
    ),
    ...Struct.keys(changes).map((name): PersonTool => ({
      name,
      title: changes[name].title,
      description: Args.graphTools[name].description,
      inputSchema: inputSchemaOf(changes[name].arguments),
      outputSchema: changedShape,
      annotations: changes[name].hints,
      role: "editor",
      perform: change(name)
    }))
  ] satisfies ReadonlyArray<PersonTool>
})

/** The output of every change. */
const changedShape = {
  type: "object",
  properties: {
    status: { type: "string", enum: ["applied", "unchanged"] },
    object: { type: "object", description: "The object as it is now" },
    relationship: { type: "object", description: "The relationship as it is now" }
  },
  required: ["status"]
} as const

// The `tasks` server's tools for a person: their own todos only.

const tools: Readonly<Record<TodoToolName, readonly [title: string, hints: ToolHints]>> = {
  add_task: ["Add a task", adds],
  list_tasks: ["List your tasks", reads],
  complete_task: ["Complete a task", sets],
  delete_task: ["Delete a task", takesAway],
  update_task: ["Change a task", sets]
}

const makeTodoPersonTools = Effect.gen(function* () {
  const todos = yield* TodoEffects
  const names = Object.keys(tools) as ReadonlyArray<TodoToolName>
  return names.map((name): PersonTool => {
    const [title, annotations] = tools[name]
    return {
      name,
      title,
      description: todoTools[name].description,
      inputSchema: inputSchemaOf(todoTools[name].arguments),
      ...(name === "list_tasks" ? {} : { outputSchema: todoShape }),
      annotations,
      role: name === "list_tasks" ? "viewer" : "editor",
      perform: (args, { principal: { userId } }) => todos.perform(name, args, { userId, contextName: null })
    }
  })
})

/** The output of every tool but the list. */
const todoShape = {
  type: "object",
  properties: {
    task_id: { type: "integer" },
    status: { type: "string", enum: ["created", "completed", "deleted", "updated"] },
    title: { type: "string" }
  },
  required: ["task_id", "status", "title"]
} as const

/** The answer to a call. */
export interface PersonOutcome {
  readonly isError: boolean
  readonly result: Schema.Json
}

export class PersonTools extends Context.Service<
  PersonTools,
  {
    /** The callable tools, as MCP lists them. */
    readonly listed: ReadonlyArray<ListedTool>
    /** Makes one call; a tool that waits for others answers within its own bound. */
    readonly call: (
      principal: PersonPrincipal,
      name: string,
      args: Schema.Json
    ) => Effect.Effect<PersonOutcome>
  }
>()("@tropism/server/tool/PersonTools") {
  static readonly layer = Layer.effect(
    PersonTools,
    Effect.gen(function* () {
      const database = yield* Database
      const toolCalls = yield* ToolCalls
      const denials = yield* Denials
      const ids = yield* Ids
      const desk = yield* AgentToolsPort
      const tools: ReadonlyArray<PersonTool> = [
        ...(yield* makeGraphPersonTools),
        ...(yield* makeTodoPersonTools),
        ...desk.tools
      ]
      const byName = new Map(tools.map((tool) => [tool.name, tool]))

      /** Runs a call in a savepoint that a failure rolls back. */
      const attempted = (
        tool: PersonTool,
        principal: PersonPrincipal,
        args: Schema.Json,
        id: ToolCallId
      ): Effect.Effect<PersonEffect, never, ProjectTransaction> => {
        const unfit = findUnfit(args)
        return (
          unfit === undefined
            ? database.attempt(tool.perform(args, { principal, id }))
            : Effect.fail(refused("invalid", unfit))
        ).pipe(
          Effect.catchTags({
            ChangeRefused: (refusal) => Effect.succeed({ result: refusalText(refusal), isError: true }),
            ToolFailed: ({ result }) => Effect.succeed({ result, isError: true })
          })
        )
      }

      /** Makes or denies the call, and records it. */
      const recorded = Effect.fnUntraced(function* (
        tool: PersonTool,
        principal: PersonPrincipal,
        args: Schema.Json
      ) {
        const id = (yield* ids.next) as ToolCallId
        const denied = includesRole(principal.role, tool.role)
          ? undefined
          : `This needs the role ${tool.role}; yours is ${principal.role}`
        const sentArgs = withoutIdentity(tool, args)
        const keptArgs =
          denied === undefined ? sentArgs : cutJson(sentArgs, toolLimits.deniedArgumentsMaxChars)
        const done: PersonEffect =
          denied === undefined
            ? yield* attempted(tool, principal, args, id)
            : { result: { error: denied, reason: "forbidden" }, isError: true, decision: "refuse" }
        const kept = { ...done, result: bounded(done.result) }
        yield* toolCalls.keep({
          id,
          runId: null,
          agentId: null,
          userId: principal.userId,
          contextName: null,
          callId: id,
          tool: tool.name,
          arguments: keptArgs,
          coerced: null,
          status: statusOf(kept),
          decision: kept.decision ?? null,
          promotionId: null,
          result: kept.result,
          reads: kept.reads ?? []
        })
        if (denied !== undefined)
          yield* denials.ofPerson(
            principal.userId,
            id,
            { name: tool.name, arguments: keptArgs },
            { reason: "forbidden", detail: denied }
          )
        yield* CrashPoint.hit("tool.beforeCommit")
        return kept
      })

      const call = Effect.fn("PersonTools.call")(function* (
        principal: PersonPrincipal,
        name: string,
        args: Schema.Json
      ) {
        const tool = byName.get(name)
        if (!tool) return { isError: true, result: { error: noTool(name, tools), reason: "notFound" } }
        const done = yield* database.inProject(principal.projectId, recorded(tool, principal, args))
        yield* CrashPoint.hit("tool.afterCommit")
        const { afterwards, isError = false, result } = done
        return { isError, result: afterwards === undefined ? result : bounded(yield* afterwards) }
      })

      return PersonTools.of({ listed: tools.map(listedPart), call })
    })
  )
}

const listedPart = ({ perform: _perform, role: _role, ...listed }: PersonTool): ListedTool => listed

const statusOf = ({ decision, isError }: PersonEffect): CallStatus => {
  if (decision === "refuse") return "refused"
  return isError === true ? "failed" : "completed"
}

/** Returns why no tool can take these arguments. */
const findUnfit = (args: Schema.Json): string | undefined => {
  if (!isJsonObject(args)) return unreadable("The arguments of a tool must be one JSON object")
  const fault = findFault(args)
  if (fault) return unreadable(`${fault.pointer}: ${fault.message}`)
  const size = keptChars(args)
  const { argumentsMaxChars } = toolLimits
  return size > argumentsMaxChars
    ? unreadable(
        `They are ${size} characters of JSON, and at most ${argumentsMaxChars} are taken${growthNote(args)}`
      )
    : undefined
}

/** Removes identities from the stored arguments: the record has its own field for the caller. */
const withoutIdentity = ({ inputSchema: { properties } }: PersonTool, args: Schema.Json): Schema.Json => {
  if (findUnfit(args) !== undefined || !isJsonObject(args))
    return shortened(JSON.stringify(args), toolLimits.faultyArgumentsMaxChars)
  const isKept = (name: string) =>
    !isIdentity(name) || (Predicate.isObject(properties) && Object.hasOwn(properties, name))
  return Object.fromEntries(Object.entries(args).filter(([name]) => isKept(name)))
}
