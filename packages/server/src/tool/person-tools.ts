/**
 * Calls tools for a person: judged by the role, done and recorded in one transaction.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Every call of a tool that there is has its record, also one that is refused;
 * identity is a field of the record and never part of its arguments (S003-R47,
 * R48). Every fault is an answer: nobody reads of a stage's inside here.
 */
import { includesRole } from "@tropism/api/authorization"
import type { ToolCallId } from "@tropism/domain/ids"
import { findFault, isJsonObject } from "@tropism/domain/json"
import { shortened } from "@tropism/domain/text-beginning"
import { cutJson } from "@tropism/domain/json-cut"
import { growthNote, keptChars } from "@tropism/domain/kept-size"
import { Context, Effect, Layer, Predicate, type Schema } from "effect"
import { CrashPoint } from "../crash-point.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { refused } from "../graph/refused.ts"
import { Ids } from "../ids.ts"
import { toolLimits } from "../limits.ts"
import { Denials } from "./denials.ts"
import { isIdentity } from "./foreign-arguments.ts"
import { makeGraphPersonTools } from "./person-graph-tools.ts"
import {
  AgentDesk,
  type ListedTool,
  type PersonEffect,
  type PersonPrincipal,
  type PersonTool
} from "./person-tool.ts"
import { makeTodoPersonTools } from "./person-todo-tools.ts"
import { refusalWords } from "./refusal-words.ts"
import { type CallStatus, ToolCalls } from "./tool-calls.ts"
import { bounded, noTool, unreadable } from "./wrong-calls.ts"

/** What a caller is told of a call. */
export interface PersonOutcome {
  readonly isError: boolean
  readonly result: Schema.Json
}

export class PersonTools extends Context.Service<
  PersonTools,
  {
    /** What may be called, as MCP lists it. */
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
      const desk = yield* AgentDesk
      const tools: ReadonlyArray<PersonTool> = [
        ...(yield* makeGraphPersonTools),
        ...(yield* makeTodoPersonTools),
        ...desk.tools
      ]
      const byName = new Map(tools.map((tool) => [tool.name, tool]))

      /** What a call comes to, with nothing of it left where it comes to nothing. */
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
            ChangeRefused: (refusal) => Effect.succeed({ result: refusalWords(refusal), isError: true }),
            ToolFailed: ({ result }) => Effect.succeed({ result, isError: true })
          })
        )
      }

      /** Does the call, or denies it, and keeps its record. */
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

/** Why no tool can be given these arguments. */
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

/** The arguments as they are kept: who called is a field of the record, whatever they say. */
const withoutIdentity = ({ inputSchema: { properties } }: PersonTool, args: Schema.Json): Schema.Json => {
  if (findUnfit(args) !== undefined || !isJsonObject(args))
    return shortened(JSON.stringify(args), toolLimits.faultyArgumentsMaxChars)
  const isKept = (name: string) =>
    !isIdentity(name) || (Predicate.isObject(properties) && Object.hasOwn(properties, name))
  return Object.fromEntries(Object.entries(args).filter(([name]) => isKept(name)))
}
