/**
 * Tasks as clients of the revision 2025-11-25 ask for them.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * The same runs, rights and answers as behind the extension: only the words are
 * others. What a task asks comes to its client while that waits for the result,
 * as a request of the server; whoever else answers meanwhile takes it back. Who
 * waits is looked up with each look, so whoever has lost the token is told no result.
 */
import { type ProtocolError, ProtocolErrorCode, type ServerContext } from "@modelcontextprotocol/server"
import type { RunId } from "@tropism/domain/ids"
import { Deferred, Effect, FiberMap, Queue, Schema } from "effect"
import { nextWakeUp, WakeUps } from "../outbox/wake-ups.ts"
import { coreTaskOf, isOver, relatedTo } from "./core-task.ts"
import { badParams, fault } from "./door-server.ts"
import type { DetailedTask, InputRequest } from "./run-task.ts"
import { InputResponse, RunTasks } from "./run-tasks.ts"
import { gone, makePlaces } from "./streams.ts"
import { taskBounds } from "./task-bounds.ts"
import type { TaskCaller } from "./task-caller.ts"
import { noTask, told } from "./task-faults.ts"

const coreOf = (task: DetailedTask) => ({ ...coreTaskOf(task, task.result?.isError === true) })

/** Who asks by now; whoever may not look any more finds no task. */
type WhoAsks = Effect.Effect<TaskCaller, ProtocolError>

const readResponse = Schema.decodeUnknownEffect(InputResponse)

/** The methods, on the services of the platform; who waits is sent away when the scope ends. */
export const makeCoreTasks = Effect.gen(function* () {
  const tasks = yield* RunTasks
  const wakeUps = yield* WakeUps
  const closing = yield* Deferred.make<void>()
  yield* Effect.addFinalizer(() => Deferred.succeed(closing, undefined))
  const places = makePlaces({ ofOwner: taskBounds.waitsOfUser, inAll: taskBounds.waits }, () =>
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
    // It ended a moment ago, or has ended and its suggestions wait: there is nothing to stop.
    if (after.status !== "cancelled")
      return yield* Effect.fail(badParams(`The task cannot be cancelled: ${after.statusMessage}`))
    return after
  })

  /** Asks the client for one thing, and does what it answers; whether that could be done. */
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
      // What it cannot be asked, or has answered in vain, waits for somebody else, or for its next try.
      Effect.catch((problem) => Effect.logDebug("A task's question was not answered", problem))
    )

  /** Asks what a task asks, until it has ended. */
  const settle = Effect.fnUntraced(function* (whoAsks: WhoAsks, runId: RunId, context: ServerContext) {
    const bell = yield* Queue.sliding<void>(1)
    const ring = Queue.offer(bell, undefined)
    const mailbox = yield* wakeUps.listen(`run:${runId}`)
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
      yield* nextWakeUp(bell, taskBounds.sweepIntervalMs)
    }
  })

  const goesOn = fault(ProtocolErrorCode.InternalError, "The task goes on: ask for its result again")

  /** Waits for the end of a task and answers what the call would have answered, to nobody who has gone meanwhile. */
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
