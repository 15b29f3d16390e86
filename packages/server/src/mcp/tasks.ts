/**
 * Task methods at the MCP endpoint: the extension (SEP-2663) and the core of 2025-11-25.
 *
 * Only a client that declares the extension in its request sees tasks; one of 2025-11-25 requests a task with its call. A missing task, one
 * of another project and an ill-formed id look the same.
 */
import {
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
  RELATED_TASK_META_KEY,
  MissingRequiredClientCapabilityError
} from "@modelcontextprotocol/server"
import { RunId } from "@tropism/domain/ids"
import { isJsonObject } from "@tropism/domain/json"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { DateTime, Effect, Option, Schema, type Scope, Deferred, FiberMap, Queue } from "effect"
import { isPassing } from "../database/connection-errors.ts"
import { principalIn } from "../http/access.ts"
import { Tokens } from "../http/tokens.ts"
import { Notifier, nextNotification, type Topic } from "../outbox/notifier.ts"
import type { McpCaller, McpCapability, CapabilityCall, RunForServer, Telling } from "./capability.ts"
import {
  begunHandleOf,
  handleOf,
  taskBounds,
  type TaskCaller,
  type DetailedTask,
  type InputRequest,
  type ListedTask
} from "./run-task.ts"
import { InputResponse, RunTasks } from "./run-tasks.ts"
import { badParams, fault, anyParams, readParams, gone, makeStreamSlots } from "./server.ts"

/** A caller of tasks with its client's capabilities, from this request or from the start of its session. */
const taskCallerOf = (caller: McpCaller, context: ServerContext, server?: Server): TaskCaller => ({
  ...caller,
  canElicit: showsForms((declaredWith(context) ?? server?.getClientCapabilities())?.elicitation)
})

const TaskParams = Schema.Struct({ taskId: Schema.String })
const readResponses = Schema.decodeUnknownEffect(Schema.Record(Schema.String, InputResponse))

/** The result of a tool that has started a run. */
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

/** A method of one or both revisions. */
interface Methods {
  readonly name: string
  readonly extension?: Work
  readonly core?: Work
}

const ListParams = Schema.Struct({ cursor: Schema.optional(Schema.NullOr(Schema.String)) })

const noTaskOf = (tool: string) =>
  fault(ProtocolErrorCode.MethodNotFound, `The tool ${tool} cannot be called as a task`)

/** The capability module; waiting callers are released when the scope ends. */
export const tasksPart: Effect.Effect<McpCapability, never, RunTasks | Tokens | Notifier | Scope.Scope> =
  Effect.gen(function* () {
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

    /** The caller's current rights; undefined when the token does not open the project any more. */
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

    /** Starts a run and returns its handle; a refusal is returned as it is. */
    const asTask = Effect.fnUntraced(function* (
      caller: McpCaller,
      call: CapabilityCall,
      context: ServerContext
    ) {
      const begun = yield* call.make({ ...call.args, wait: false })
      const run = Option.getOrUndefined(readBegun(begun))
      if (run === undefined) return begun
      const { id } = run.structuredContent
      const now = DateTime.formatIso(yield* DateTime.now)
      const looked = Effect.mapBoth(tasks.get(taskCallerOf(caller, context), id), {
        onFailure: told,
        onSuccess: handleOf
      })
      // The run has begun even if it cannot be read now. The caller would start another after an error, so answer.
      const handle = yield* Effect.catchDefect(looked, (defect) =>
        isPassing(defect) ? Effect.succeed(begunHandleOf(id, now)) : Effect.die(defect)
      )
      return knowsTasks(context)
        ? { content: [], ...handle }
        : { content: [], task: { ...coreTaskOf(handle, false) } }
    })

    /** Answers a call that requests or accepts a task; undefined leaves it to the tool. */
    const answerCall = (caller: McpCaller) => (call: CapabilityCall, context: ServerContext) => {
      const asksForTask = declaredWith(context) === undefined && call.asksForTask
      if (call.name === "trigger_agent")
        return asksForTask || knowsTasks(context) ? asTask(caller, call, context) : undefined
      return asksForTask ? Effect.fail(noTaskOf(call.name)) : undefined
    }

    /** Notifies of those of these tasks that the caller can see. */
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
        // For 2025-11-25; the SDK hides it from clients of the newer revision.
        capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
        extend: extend(caller)
      })
    }
  })

// Task methods of 2025-11-25.
//
// The same runs, rights and results as the extension in another format. A task's question reaches its client as a server request while the
// client waits for the result; if another answers first, it is withdrawn. Rights are checked at each poll, so a caller who loses the token
// gets no result.

const coreOf = (task: DetailedTask) => ({ ...coreTaskOf(task, task.result?.isError === true) })

/** The caller's current rights; fails with "no such task" when there are none. */
type WhoAsks = Effect.Effect<TaskCaller, ProtocolError>

const readResponse = Schema.decodeUnknownEffect(InputResponse)

/** The methods; waiting callers are released when the scope ends. */
const makeCoreTasks = Effect.gen(function* () {
  const tasks = yield* RunTasks
  const notifier = yield* Notifier
  const closing = yield* Deferred.make<void>()
  yield* Effect.addFinalizer(() => Deferred.succeed(closing, undefined))
  const places = makeStreamSlots({ ofOwner: taskBounds.waitsOfUser, inAll: taskBounds.waits }, () =>
    fault(ProtocolErrorCode.InternalError, "Too many wait for results: ask with tasks/get")
  )

  const look = (asking: TaskCaller, runId: RunId) => Effect.mapError(tasks.get(asking, runId), told)

  const get = (asking: TaskCaller, runId: RunId) => Effect.map(look(asking, runId), coreOf)

  const list = (asking: TaskCaller, cursor: string | undefined) =>
    Effect.map(Effect.mapError(tasks.list(asking, cursor), told), ({ items, nextCursor }) => ({
      tasks: items.map(({ hasFailed, task }) => ({ ...coreTaskOf(task, hasFailed) })),
      ...(nextCursor === null ? {} : { nextCursor })
    }))

  const cancel = Effect.fnUntraced(function* (asking: TaskCaller, runId: RunId) {
    const before = yield* get(asking, runId)
    if (isOver(before.status)) return yield* Effect.fail(badParams(`The task is ${before.status} already`))
    yield* Effect.mapError(tasks.cancel(asking, runId), told)
    const after = yield* get(asking, runId)
    // It had already ended, perhaps with pending suggestions: there is nothing to cancel.
    if (after.status !== "cancelled")
      return yield* Effect.fail(badParams(`The task cannot be cancelled: ${after.statusMessage}`))
    return after
  })

  /** Asks the client one question and applies the answer; returns whether that worked. */
  const ask = (
    whoAsks: WhoAsks,
    runId: RunId,
    key: string,
    { method, params }: InputRequest,
    context: ServerContext
  ) =>
    Effect.gen(function* () {
      const answered = yield* Effect.tryPromise((signal) =>
        context.mcpReq.send(
          {
            method,
            params: {
              ...params,
              requestedSchema: { ...params.requestedSchema } as never,
              _meta: relatedTo(runId)
            }
          },
          { signal, timeout: taskBounds.waitMaxMs }
        )
      )
      yield* tasks.answer(yield* whoAsks, runId, { [key]: yield* readResponse(answered) })
    }).pipe(
      // An unanswered question waits for another client, or for the next attempt.
      Effect.catch((problem) => Effect.logDebug("A task's question was not answered", problem))
    )

  /** Asks a task's questions until it has ended. */
  const settle = Effect.fnUntraced(function* (whoAsks: WhoAsks, runId: RunId, context: ServerContext) {
    const bell = yield* Queue.sliding<void>(1)
    const ring = Queue.offer(bell, undefined)
    const mailbox = yield* notifier.listen(`run:${runId}`)
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(mailbox), ring)))
    const asked = new Set<string>()
    const forms = yield* FiberMap.make<string>()
    while (true) {
      const task = yield* look(yield* whoAsks, runId)
      if (isOver(task.status)) return task
      const requests = task.inputRequests ?? {}
      for (const key of asked) if (!Object.hasOwn(requests, key)) yield* FiberMap.remove(forms, key)
      for (const [key, request] of Object.entries(requests)) {
        if (asked.has(key)) continue
        asked.add(key)
        yield* FiberMap.run(forms, key, Effect.andThen(ask(whoAsks, runId, key, request, context), ring))
      }
      yield* nextNotification(bell, taskBounds.sweepIntervalMs)
    }
  })

  const goesOn = fault(ProtocolErrorCode.InternalError, "The task goes on: ask for its result again")

  /** Waits for a task's end and returns the result of its call, unless the client has disconnected. */
  const result = Effect.fnUntraced(function* (
    asking: TaskCaller,
    callerNow: Effect.Effect<TaskCaller | undefined>,
    runId: RunId,
    context: ServerContext
  ) {
    yield* Effect.acquireRelease(places.enter(`${asking.projectId} ${asking.principal.userId}`), places.leave)
    const over = Effect.andThen(
      Effect.raceAllFirst([Deferred.await(closing), Effect.sleep(taskBounds.waitMaxMs), gone(context)]),
      Effect.fail(goesOn)
    )
    const whoAsks = Effect.filterOrFail(callerNow, (caller) => caller !== undefined, noTask)
    const task = yield* Effect.raceFirst(settle(whoAsks, runId, context), over)
    if (task.result === undefined)
      return yield* Effect.fail(badParams("The task was cancelled: it has no result"))
    const { content, isError, structuredContent } = task.result
    return { content, structuredContent, isError, _meta: relatedTo(runId) }
  }, Effect.scoped)

  return { get, list, cancel, result }
})

// Maps a run to a core task of 2025-11-25.
//
// Pure, and derived from the newer form (`run-task.ts`), so both revisions agree. They differ in names and in one rule: here a call with an
// error is a failed task.

/** A task as every method of 2025-11-25 returns it. */
export interface CoreTask {
  readonly taskId: string
  readonly status: DetailedTask["status"] | "failed"
  readonly statusMessage: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  /** The retention: unlimited. */
  readonly ttl: null
  readonly pollInterval: number
}

/** The task of a run, which may have failed. */
export const coreTaskOf = (
  { createdAt, lastUpdatedAt, pollIntervalMs, status, statusMessage, taskId, ttlMs }: ListedTask,
  hasFailed: boolean
): CoreTask => ({
  taskId,
  status: status === "completed" && hasFailed ? "failed" : status,
  statusMessage,
  createdAt,
  lastUpdatedAt,
  ttl: ttlMs,
  pollInterval: pollIntervalMs
})

/** The metadata that relates a message to a task. */
export const relatedTo = (taskId: string) => ({ [RELATED_TASK_META_KEY]: { taskId } })

/** Whether a task is final. */
export const isOver = (status: CoreTask["status"]): boolean =>
  status === "completed" || status === "failed" || status === "cancelled"

// Watches runs as tasks and notifies of status changes.
//
// Status comes from committed rows on any server; notifications only shorten the time until the next sweep. A sweep is a few statements for
// all tasks of a stream, and a whole task is read only when its status has changed. Rights are checked at each sweep, so a caller who loses
// the token or the right receives nothing more. Unwatched tasks cost nothing.

/** Creates the watcher. */
const makeTaskWatching = Effect.gen(function* () {
  const tasks = yield* RunTasks
  const notifier = yield* Notifier

  /** A signal that fires when one of these runs may have changed. */
  const bellOf = Effect.fnUntraced(function* (runIds: ReadonlyArray<RunId>) {
    const bell = yield* Queue.sliding<void>(1)
    for (const id of runIds) {
      const mailbox = yield* notifier.listen(`run:${id}` satisfies Topic)
      const ring = Effect.andThen(Queue.take(mailbox), Queue.offer(bell, undefined))
      yield* Effect.forkScoped(Effect.forever(ring))
    }
    return bell
  })

  /** Sends each run's status now and after every change; ends when all are final or the caller has no rights. */
  return Effect.fnUntraced(function* (
    /** The caller's current rights; undefined when there are none. */
    findCaller: Effect.Effect<TaskCaller | undefined>,
    runIds: ReadonlyArray<RunId>,
    tell: (task: DetailedTask) => Effect.Effect<void>
  ): Effect.fn.Return<void, never, Scope.Scope> {
    const bell = yield* bellOf(runIds)
    const told = new Map<string, string>()
    let open: ReadonlyArray<RunId> = runIds
    while (open.length > 0) {
      const caller = yield* findCaller
      if (caller === undefined) return
      const glances = yield* Effect.orElseSucceed(tasks.glance(caller, open), () => [])
      const stillOpen: Array<RunId> = []
      for (const { keys, task } of glances) {
        const runId = task.taskId as RunId
        const standing = JSON.stringify([task.status, keys])
        if (!isOver(task.status)) stillOpen.push(runId)
        if (told.get(runId) === standing) continue
        // The right to read it may have ended since the summary was read.
        const whole = yield* Effect.orElseSucceed(tasks.get(caller, runId), () => undefined)
        if (whole === undefined) continue
        told.set(runId, JSON.stringify([whole.status, Object.keys(whole.inputRequests ?? {})]))
        yield* tell(whole)
      }
      open = stillOpen
      if (open.length > 0) yield* nextNotification(bell, taskBounds.sweepIntervalMs)
    }
  })
})

// The client's declaration of the Tasks extension (SEP-2663).

export const tasksExtension = "io.modelcontextprotocol/tasks"

const capabilitiesKey = "io.modelcontextprotocol/clientCapabilities"

const Declared = Schema.Struct({
  [capabilitiesKey]: Schema.Struct({
    elicitation: Schema.optional(Schema.Unknown),
    extensions: Schema.optional(Schema.Record(Schema.String, Schema.Unknown))
  })
})
const readDeclared = Schema.decodeUnknownOption(Declared)

/** The capabilities in this request; undefined in revisions that send them once per session. */
const declaredWith = ({ mcpReq: { envelope } }: ServerContext) =>
  Option.getOrUndefined(readDeclared(envelope))?.[capabilitiesKey]

/** Whether a call may be answered with a task of the extension. */
export const knowsTasks = (context: ServerContext): boolean =>
  declaredWith(context)?.extensions?.[tasksExtension] !== undefined

/** Whether a client with this capability shows forms; one without a mode does. */
export const showsForms = (elicitation: unknown): boolean =>
  isJsonObject(elicitation) && ("form" in elicitation || !("url" in elicitation))

const lacking = new MissingRequiredClientCapabilityError({
  requiredCapabilities: { extensions: { [tasksExtension]: {} } }
})

/** Admits only clients that declare the extension, which requires 2026-07-28. */
export const requireExtension = (context: ServerContext): Effect.Effect<void, ProtocolError> => {
  if (declaredWith(context) === undefined)
    return Effect.fail(fault(ProtocolErrorCode.MethodNotFound, "Method not found"))
  return knowsTasks(context) ? Effect.void : Effect.fail(lacking)
}

// Refusals of task methods as JSON-RPC errors.

/** A missing task, one of another project, or an ill-formed id. */
export const noTask = (): ProtocolError => badParams("There is no such task")

type Problem = ProtocolError | { readonly _tag: string; readonly detail?: string | undefined }

/** A refusal as a JSON-RPC error; a task that the caller may not see is missing. */
const told = (problem: Problem): ProtocolError => {
  if (problem instanceof ProtocolError) return problem
  if (problem._tag === "NotFound") return noTask()
  const words = problem.detail ?? "The task cannot do this now"
  return problem._tag === "Forbidden" ? fault(ProtocolErrorCode.InvalidRequest, words) : badParams(words)
}
