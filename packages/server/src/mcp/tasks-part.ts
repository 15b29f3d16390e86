/**
 * Tasks at the MCP door: a run is a task, by the extension (SEP-2663) and in the core of 2025-11-25.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * Only a client that says with its request that it knows the extension is told of
 * tasks; one of 2025-11-25 asks for one with its call. A task that is missing, another project's, or no id at all is the same to
 * whoever asks.
 */
import {
  type ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext
} from "@modelcontextprotocol/server"
import { RunId } from "@tropism/domain/ids"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { DateTime, Effect, Option, Schema, type Scope } from "effect"
import { isPassing } from "../database/database-away.ts"
import { principalIn } from "../http/access.ts"
import { Tokens } from "../http/tokens.ts"
import { badParams, fault } from "./door-server.ts"
import { coreTaskOf } from "./core-task.ts"
import { makeCoreTasks } from "./core-tasks.ts"
import { noTask, told } from "./task-faults.ts"
import { declaredWith, knowsTasks, requireExtension, showsForms, tasksExtension } from "./tasks-extension.ts"
import { anyParams, readParams } from "./method-params.ts"
import type { WakeUps } from "../outbox/wake-ups.ts"
import type { McpCaller, McpPart, PartCall, RunForServer, Telling } from "./part.ts"
import { InputResponse, RunTasks } from "./run-tasks.ts"
import { begunHandleOf, handleOf } from "./run-task.ts"
import { taskBounds } from "./task-bounds.ts"
import type { TaskCaller } from "./task-caller.ts"
import { makeTaskWatching } from "./task-watching.ts"

/** A caller of tasks, with what its client says with this request, or has said when its session began. */
const taskCallerOf = (caller: McpCaller, context: ServerContext, server?: Server): TaskCaller => ({
  ...caller,
  canElicit: showsForms((declaredWith(context) ?? server?.getClientCapabilities())?.elicitation)
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

const decodeRunId = Schema.decodeUnknownEffect(RunId)

type Work = (
  asking: TaskCaller,
  runId: RunId,
  context: ServerContext
) => Effect.Effect<Record<string, unknown>, ProtocolError>

/** A method of either revision, or of both. */
interface Methods {
  readonly name: string
  readonly extension?: Work
  readonly core?: Work
}

const ListParams = Schema.Struct({ cursor: Schema.optional(Schema.NullOr(Schema.String)) })

const noTaskOf = (tool: string) =>
  fault(ProtocolErrorCode.MethodNotFound, `The tool ${tool} cannot be called as a task`)

/** The part, on the services of the platform; who waits for results is sent away when the scope ends. */
export const tasksPart: Effect.Effect<McpPart, never, RunTasks | Tokens | WakeUps | Scope.Scope> = Effect.gen(
  function* () {
    const tasks = yield* RunTasks
    const tokens = yield* Tokens
    const core = yield* makeCoreTasks
    const watch = yield* makeTaskWatching

    const update: Work = Effect.fnUntraced(function* (asking, runId, { mcpReq }) {
      const responses = mcpReq.inputResponses ?? {}
      if (Object.keys(responses).length > taskBounds.answers)
        return yield* Effect.fail(badParams(`A request answers at most ${taskBounds.answers} questions`))
      const read = yield* Effect.mapError(readResponses(responses), ({ issue }) =>
        badParams("Invalid params: /inputResponses", { errors: schemaFaults(issue) })
      )
      yield* Effect.mapError(tasks.answer(asking, runId, read), told)
      return {}
    })

    /** Who a caller is by now; undefined when the token opens the project no more. */
    const callerNow = (caller: McpCaller, { canElicit }: TaskCaller) =>
      Effect.flatMap(tokens.findByHash(caller.tokenHash), (principal) =>
        principal === undefined
          ? Effect.undefined
          : principalIn(principal, caller.projectId).pipe(
              Effect.map((now): TaskCaller => ({ ...caller, principal: now, canElicit })),
              Effect.orElseSucceed(() => undefined)
            )
      )

    const extend = (caller: McpCaller) => (server: Server, run: RunForServer) => {
      const serve = (methods: Methods) =>
        server.setRequestHandler(methods.name, anyParams, (params, context) =>
          run(
            Effect.gen(function* () {
              const isCore = declaredWith(context) === undefined
              const work = isCore ? methods.core : methods.extension
              if (!isCore || work === undefined) yield* requireExtension(context)
              const { taskId } = yield* readParams(TaskParams, params)
              const runId = yield* Effect.mapError(decodeRunId(taskId), noTask)
              return work === undefined
                ? {}
                : yield* work(taskCallerOf(caller, context, server), runId, context)
            })
          )
        )
      serve({
        name: "tasks/get",
        extension: (asking, runId) =>
          Effect.mapBoth(tasks.get(asking, runId), { onFailure: told, onSuccess: (task) => ({ ...task }) }),
        core: (asking, runId) => core.get(asking, runId)
      })
      serve({
        name: "tasks/cancel",
        extension: (asking, runId) => Effect.mapError(Effect.as(tasks.cancel(asking, runId), {}), told),
        core: (asking, runId) => core.cancel(asking, runId)
      })
      serve({
        name: "tasks/result",
        core: (asking, runId, context) => core.result(asking, callerNow(caller, asking), runId, context)
      })
      serve({ name: "tasks/update", extension: update })
      server.setRequestHandler("tasks/list", anyParams, (params, context) =>
        run(
          Effect.flatMap(readParams(ListParams, params), ({ cursor }) =>
            core.list(taskCallerOf(caller, context, server), cursor ?? undefined)
          )
        )
      )
    }

    /** Begins a run and answers its handle; what was refused is answered as it is. */
    const asTask = Effect.fnUntraced(function* (caller: McpCaller, call: PartCall, context: ServerContext) {
      const begun = yield* call.make({ ...call.args, wait: false })
      const run = Option.getOrUndefined(readBegun(begun))
      if (run === undefined) return begun
      const { id } = run.structuredContent
      const now = DateTime.formatIso(yield* DateTime.now)
      const looked = Effect.mapBoth(tasks.get(taskCallerOf(caller, context), id), {
        onFailure: told,
        onSuccess: handleOf
      })
      // Whatever is not known of it, it has begun: told of a fault, whoever asked would begin another.
      const handle = yield* Effect.catchDefect(looked, (defect) =>
        isPassing(defect) ? Effect.succeed(begunHandleOf(id, now)) : Effect.die(defect)
      )
      return knowsTasks(context)
        ? { content: [], ...handle }
        : { content: [], task: { ...coreTaskOf(handle, false) } }
    })

    /** A call that asks for a task, or whose client takes one; undefined leaves it to the tool. */
    const answerCall = (caller: McpCaller) => (call: PartCall, context: ServerContext) => {
      const asksForTask = declaredWith(context) === undefined && call.asksForTask
      if (call.name === "trigger_agent")
        return asksForTask || knowsTasks(context) ? asTask(caller, call, context) : undefined
      return asksForTask ? Effect.fail(noTaskOf(call.name)) : undefined
    }

    /** Tells of those of these tasks that are there for this caller. */
    const listen = Effect.fnUntraced(function* (
      caller: McpCaller,
      taskIds: ReadonlyArray<string>,
      context: ServerContext
    ) {
      yield* requireExtension(context)
      const asked = [...new Set(taskIds)].filter(Schema.is(RunId))
      if (asked.length > taskBounds.watchedTasks)
        return yield* Effect.fail(badParams(`A stream tells of at most ${taskBounds.watchedTasks} tasks`))
      const asking = taskCallerOf(caller, context)
      const found = yield* Effect.mapError(tasks.glance(asking, asked), told)
      const there = new Set<string>(found.map(({ task }) => task.taskId))
      const accepted = asked.filter((id) => there.has(id))
      const telling: Telling = {
        honored: { taskIds: accepted },
        tell: (notify) =>
          Effect.scoped(
            watch(callerNow(caller, asking), accepted, (task) => notify("notifications/tasks", { ...task }))
          )
      }
      return telling
    })

    return {
      name: "tasks extension",
      offerTo: (caller) => ({
        listen: ({ taskIds }, context) =>
          taskIds === undefined ? Effect.undefined : listen(caller, taskIds, context),
        answerCall: answerCall(caller),
        newerCapabilities: { extensions: { [tasksExtension]: {} } },
        // Of 2025-11-25; the SDK tells nobody of it who speaks the newer revision.
        capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
        extend: extend(caller)
      })
    }
  }
)
