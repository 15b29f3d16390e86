/**
 * Calls that a server answers with a task: it works on, and is looked at until it has ended.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * A task is waited for within the time of its call. Whoever gives the call up
 * cancels the task, so no work goes on of which nobody hears.
 */
import {
  type CallToolResult,
  type Client,
  type JSONRPCMessage,
  specTypeSchemas,
  type Transport
} from "@modelcontextprotocol/client"
import { isJsonObject } from "@tropism/domain/json"
import { Effect, Schema } from "effect"
import { toolLimits } from "../limits.ts"
import { foreignLimits } from "./foreign-limits.ts"
import { ForeignFault, lineOf, toFault } from "./foreign-fault.ts"
import { wantedIn, wantsWords } from "./server-wants.ts"

/** What a client declares that waits for tasks. */
export const taskCapabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } }

const taskKey = "tropism/taskId"

/** Lets an answer through that is a task: the SDK knows no result of this type. */
export const admitTasks = (wire: Transport): void => {
  const { onmessage: before } = wire
  const onmessage = (message: JSONRPCMessage) => {
    before?.(message)
    if (!("result" in message) || !isJsonObject(message.result)) return
    const { resultType, taskId } = message.result
    if (resultType !== "task" || typeof taskId !== "string") return
    Object.assign(message, { result: { resultType: "complete", content: [], _meta: { [taskKey]: taskId } } })
  }
  Object.assign(wire, { onmessage })
}

/** The task that an answer stands for. */
export const taskIn = ({ _meta }: CallToolResult): string | undefined => {
  const taskId = _meta?.[taskKey]
  return typeof taskId === "string" ? taskId : undefined
}

const Task = Schema.Struct({
  status: Schema.String,
  statusMessage: Schema.optional(Schema.Unknown),
  pollIntervalMs: Schema.optional(Schema.Unknown),
  inputRequests: Schema.optional(Schema.Unknown),
  result: Schema.optional(Schema.Unknown),
  error: Schema.optional(Schema.Unknown)
})
const readTask = Schema.toStandardSchemaV1(Task)
const anything = Schema.toStandardSchemaV1(Schema.Unknown)

/** Looks at a task until it has ended; interrupted, it is cancelled. */
export const awaitTask = (client: Client, taskId: string): Effect.Effect<CallToolResult, ForeignFault> =>
  Effect.gen(function* () {
    for (;;) {
      const task = yield* look(client, taskId)
      switch (task.status) {
        case "completed":
          return yield* readAnswer(task.result)
        case "failed":
          return yield* answered(`The task failed: ${sentenceOf(task)}`)
        case "cancelled":
          return yield* answered(`The server cancelled the task: ${sentenceOf(task)}`)
        case "input_required":
          yield* Effect.forkDetach(cancel(client, taskId))
          return yield* answered(wantsWords(wantedIn(task.inputRequests)))
      }
      yield* Effect.sleep(pauseOf(task.pollIntervalMs))
    }
  }).pipe(Effect.onInterrupt(() => Effect.forkDetach(cancel(client, taskId))))

const look = (client: Client, taskId: string) =>
  Effect.tryPromise({
    try: (signal) =>
      client.request({ method: "tasks/get", params: { taskId } }, readTask, {
        timeout: toolLimits.sdkTimeoutMs,
        signal
      }),
    // Whatever is wrong with a look, the work had begun.
    catch: (error) => {
      const { isBroken, message } = toFault(error)
      return new ForeignFault({
        outcome: "unknown",
        message: `The task is not told of: ${message}`,
        isBroken
      })
    }
  })

const cancel = (client: Client, taskId: string) =>
  Effect.tryPromise((signal) =>
    client.request({ method: "tasks/cancel", params: { taskId } }, anything, {
      timeout: toolLimits.sdkTimeoutMs,
      signal
    })
  ).pipe(Effect.timeoutOption(foreignLimits.endGraceMs), Effect.ignore)

/** The server says how soon to look again, within bounds. */
const pauseOf = (wanted: unknown): number =>
  Math.min(
    foreignLimits.taskPollMaxMs,
    Math.max(foreignLimits.taskPollMinMs, typeof wanted === "number" ? wanted : foreignLimits.taskPollMinMs)
  )

const readAnswer = (result: unknown): Effect.Effect<CallToolResult, ForeignFault> =>
  Effect.promise(() => Promise.resolve(specTypeSchemas.CallToolResult["~standard"].validate(result))).pipe(
    Effect.flatMap((judged) =>
      judged.issues === undefined
        ? Effect.succeed(judged.value as CallToolResult)
        : Effect.fail(
            new ForeignFault({
              outcome: "unknown",
              message: "The task was completed, and its result is none of a tool",
              isBroken: false
            })
          )
    )
  )

const answered = (message: string) =>
  Effect.fail(new ForeignFault({ outcome: "answered", message: lineOf(message), isBroken: false }))

const sentenceOf = ({ error, statusMessage }: typeof Task.Type): string => {
  const said = isJsonObject(error) ? error["message"] : statusMessage
  return typeof said === "string" && said !== "" ? said : "it does not say why"
}
