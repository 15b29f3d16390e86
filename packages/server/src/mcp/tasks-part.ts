/**
 * The Tasks extension at the MCP door: a run is a task (SEP-2663).
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * Only a client that says with its request that it knows the extension is told of
 * tasks. A task that is missing, another project's, or no id at all is the same to
 * whoever asks.
 */
import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext
} from "@modelcontextprotocol/server"
import { RunId } from "@tropism/domain/ids"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { Effect, Option, Schema } from "effect"
import { badParams, fault } from "./door-server.ts"
import { anyParams, readParams } from "./method-params.ts"
import type { McpCaller, McpPart, PartCall, RunForServer } from "./part.ts"
import { InputResponse, RunTasks, type TaskCaller } from "./run-tasks.ts"
import { handleOf } from "./run-task.ts"
import { taskBounds } from "./task-bounds.ts"

export const tasksExtension = "io.modelcontextprotocol/tasks"

const capabilitiesKey = "io.modelcontextprotocol/clientCapabilities"

const Declared = Schema.Struct({
  [capabilitiesKey]: Schema.Struct({
    elicitation: Schema.optional(Schema.Unknown),
    extensions: Schema.optional(Schema.Record(Schema.String, Schema.Unknown))
  })
})
const readDeclared = Schema.decodeUnknownOption(Declared)

/** What the client says with this request that it can do; undefined in the revisions that say so once. */
const declaredWith = ({ mcpReq: { envelope } }: ServerContext) =>
  Option.getOrUndefined(readDeclared(envelope))?.[capabilitiesKey]

/** Whether a call may be answered with a task. */
export const knowsTasks = (context: ServerContext): boolean =>
  declaredWith(context)?.extensions?.[tasksExtension] !== undefined

/** A caller of tasks, with what its client says with this request. */
export const taskCallerOf = (caller: McpCaller, context: ServerContext): TaskCaller => ({
  ...caller,
  canElicit: declaredWith(context)?.elicitation !== undefined
})

const TaskParams = Schema.Struct({ taskId: Schema.String })
const readResponses = Schema.decodeUnknownEffect(Schema.Record(Schema.String, InputResponse))

/** What a tool answers that has begun a run. */
const readBegun = Schema.decodeUnknownOption(
  Schema.Struct({
    isError: Schema.optional(Schema.Literal(false)),
    structuredContent: Schema.Struct({ id: RunId })
  })
)

const noTask = () => badParams("There is no such task")
const decodeRunId = Schema.decodeUnknownEffect(RunId)

/** The part, on the services of the platform. */
export const tasksPart: Effect.Effect<McpPart, never, RunTasks> = Effect.gen(function* () {
  const tasks = yield* RunTasks

  const extend = (caller: McpCaller) => (server: Server, run: RunForServer) => {
    const serve = <A extends Record<string, unknown>>(
      method: string,
      work: (asking: TaskCaller, runId: RunId, context: ServerContext) => Effect.Effect<A, Problem>
    ) =>
      server.setRequestHandler(method, anyParams, (params, context) =>
        run(
          Effect.gen(function* () {
            yield* requireExtension(context)
            const { taskId } = yield* readParams(TaskParams, params)
            const runId = yield* Effect.mapError(decodeRunId(taskId), noTask)
            return yield* Effect.mapError(work(taskCallerOf(caller, context), runId, context), told)
          })
        )
      )
    serve("tasks/get", (asking, runId) => Effect.map(tasks.get(asking, runId), (task) => ({ ...task })))
    serve("tasks/cancel", (asking, runId) => Effect.as(tasks.cancel(asking, runId), {}))
    serve("tasks/update", (asking, runId, { mcpReq }) =>
      Effect.gen(function* () {
        const responses = mcpReq.inputResponses ?? {}
        if (Object.keys(responses).length > taskBounds.answers)
          return yield* Effect.fail(badParams(`A request answers at most ${taskBounds.answers} questions`))
        const read = yield* Effect.mapError(readResponses(responses), ({ issue }) =>
          badParams("Invalid params: /inputResponses", { errors: schemaFaults(issue) })
        )
        yield* tasks.answer(asking, runId, read)
        return {}
      })
    )
  }

  /** Begins a run and answers its handle; what was refused is answered as it is. */
  const asTask = Effect.fnUntraced(function* (caller: McpCaller, call: PartCall, context: ServerContext) {
    const begun = yield* call.make({ ...call.args, wait: false })
    const run = Option.getOrUndefined(readBegun(begun))
    if (run === undefined) return begun
    const task = yield* Effect.mapError(
      tasks.get(taskCallerOf(caller, context), run.structuredContent.id),
      told
    )
    return { content: [], ...handleOf(task) }
  })

  return {
    name: "tasks extension",
    offerTo: (caller) => ({
      answerCall: (call, context) =>
        call.name === "trigger_agent" && knowsTasks(context) ? asTask(caller, call, context) : undefined,
      capabilities: { extensions: { [tasksExtension]: {} } },
      extend: extend(caller)
    })
  }
})

const requireExtension = (context: ServerContext): Effect.Effect<void, ProtocolError> => {
  if (declaredWith(context) === undefined)
    return Effect.fail(fault(ProtocolErrorCode.MethodNotFound, "Method not found"))
  return knowsTasks(context)
    ? Effect.void
    : Effect.fail(
        new MissingRequiredClientCapabilityError({
          requiredCapabilities: { extensions: { [tasksExtension]: {} } }
        })
      )
}

type Problem = ProtocolError | { readonly _tag: string; readonly detail?: string | undefined }

/** A refusal in the words of JSON-RPC; a task that may not be seen is not there. */
const told = (problem: Problem): ProtocolError => {
  if (problem instanceof ProtocolError) return problem
  if (problem._tag === "NotFound") return noTask()
  const words = problem.detail ?? "The task cannot do this now"
  return problem._tag === "Forbidden" ? fault(ProtocolErrorCode.InvalidRequest, words) : badParams(words)
}
