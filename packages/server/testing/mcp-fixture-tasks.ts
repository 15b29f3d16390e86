/**
 * Tools of the MCP conformance suite that are answered with tasks, and those tasks.
 *
 * No run stands behind a task: its state follows from its plan and the clock. The
 * newest tasks are kept in memory.
 */
import { ProtocolErrorCode, type Server } from "@modelcontextprotocol/server"
import { Clock, Effect, Schema } from "effect"
import { Ids } from "../src/ids.ts"
import { fault, anyParams, readParams } from "../src/mcp/server.ts"
import { answering, form, givenTo, nameForm, plainTool } from "./mcp-fixture-tools.ts"
import type { Answering, Offer, CapabilityTool, RunForServer } from "../src/mcp/capability.ts"
import { noTask, knowsTasks, requireExtension, tasksExtension } from "../src/mcp/tasks.ts"

/** Tasks that are kept, and how long one may take. */
const tasksMax = 1_000
const secondsMax = 600

type Asked = Readonly<Record<string, ReturnType<typeof form>>>

/** What a task comes to: what its tool answers, or a fault of the protocol. */
type End =
  | {
      readonly result: {
        readonly resultType: "complete"
        readonly content: ReadonlyArray<object>
        readonly isError: boolean
      }
    }
  | { readonly error: { readonly code: number; readonly message: string } }

interface FixtureTask {
  readonly taskId: string
  readonly createdAt: number
  readonly endsAt: number
  readonly end: End
  asked: Asked
  isCancelled: boolean
}

interface Plan {
  readonly seconds?: number
  readonly asked?: Asked
  readonly end: End
}

const saying = (words: string, isError = false): End => ({
  result: { resultType: "complete", content: [{ type: "text", text: words }], isError }
})

const timesOf = ({ createdAt, taskId }: FixtureTask) => ({
  taskId,
  createdAt: new Date(createdAt).toISOString(),
  lastUpdatedAt: new Date(createdAt).toISOString(),
  ttlMs: null,
  pollIntervalMs: 100
})

/** How a task stands at an instant. */
const standingOf = (task: FixtureTask, now: number) => {
  if (task.isCancelled) return { ...timesOf(task), status: "cancelled" }
  if (Object.keys(task.asked).length > 0)
    return { ...timesOf(task), status: "input_required", inputRequests: task.asked }
  if (now < task.endsAt) return { ...timesOf(task), status: "working" }
  return { ...timesOf(task), status: "error" in task.end ? "failed" : "completed", ...task.end }
}

/** The newest tasks of a program. */
const makeStore = (ids: Ids["Service"]) => {
  const kept = new Map<string, FixtureTask>()
  const begin = Effect.fnUntraced(function* ({ asked = {}, end, seconds = 0 }: Plan) {
    const now = yield* Clock.currentTimeMillis
    const task = {
      taskId: yield* ids.next,
      createdAt: now,
      endsAt: now + seconds * 1_000,
      end,
      asked,
      isCancelled: false
    }
    kept.set(task.taskId, task)
    for (const oldest of kept.keys()) if (kept.size > tasksMax) kept.delete(oldest)
    return { content: [], ...timesOf(task), status: "working", resultType: "task" }
  })
  const find = (taskId: string) => {
    const task = kept.get(taskId)
    return task === undefined ? Effect.fail(noTask()) : Effect.succeed(task)
  }
  return { begin, find }
}

const secondsOf = (value: unknown): number =>
  typeof value === "number" ? Math.min(Math.max(value, 0), secondsMax) : 0

const TaskParams = Schema.Struct({ taskId: Schema.String })

const confirm = form("Delete it?", { confirm: { type: "boolean" } })

/** The tools, what the extension's methods answer, and that they are there. */
export const fixtureTasks = Effect.map(Ids, (ids): Offer => {
  const { begin, find } = makeStore(ids)

  /** A tool that is a task to whoever knows tasks, and to others what they are told. */
  const taskTool = (name: string, plan: Plan, otherwise: CapabilityTool["call"]): CapabilityTool =>
    plainTool(name, "Is answered with a task", (args, context) =>
      knowsTasks(context) ? begin(plan) : otherwise(args, context)
    )

  const required: CapabilityTool["call"] = (_args, context) =>
    Effect.andThen(requireExtension(context), Effect.fail(noTask()))

  const slowCompute = plainTool("slow_compute", "Takes its time", ({ label, seconds }, context) => {
    const takes = secondsOf(seconds)
    const words = `Computed ${String(label)} in ${takes} s`
    return knowsTasks(context)
      ? begin({ seconds: takes, end: saying(words) })
      : Effect.delay(answering({ type: "text", text: words }), takes * 1_000)
  })

  const tools: ReadonlyArray<CapabilityTool> = [
    plainTool("greet", "Answers at once", ({ name }) =>
      answering({ type: "text", text: `Hello, ${String(name)}!` })
    ),
    slowCompute,
    taskTool("failing_job", { seconds: 1, end: saying("It failed, as it always does", true) }, required),
    taskTool(
      "protocol_error_job",
      { end: { error: { code: ProtocolErrorCode.InternalError, message: "It broke, as it always does" } } },
      () => Effect.fail(fault(ProtocolErrorCode.InternalError, "It broke, as it always does"))
    ),
    taskTool("confirm_delete", { asked: { confirm }, end: saying("It is gone.") }, required),
    taskTool("multi_input", { asked: { first: confirm, second: nameForm }, end: saying("Both.") }, required),
    plainTool("test_tool_with_task", "Asks for a name, then goes on as a task", (_args, context) => {
      const given = givenTo(context, "user_name")
      return given === undefined
        ? Effect.succeed({ resultType: "input_required", inputRequests: { user_name: nameForm } })
        : begin({ end: saying(`Done for ${JSON.stringify(given["content"])}`) })
    })
  ]

  const extend = (server: Server, run: RunForServer) => {
    const serve = (
      method: string,
      work: (task: FixtureTask, given: object) => Answering<Record<string, unknown>>
    ) =>
      server.setRequestHandler(method, anyParams, (params, context) =>
        run(
          Effect.gen(function* () {
            yield* requireExtension(context)
            const { taskId } = yield* readParams(TaskParams, params)
            return yield* work(yield* find(taskId), context.mcpReq.inputResponses ?? {})
          })
        )
      )
    serve("tasks/get", (task) => Effect.map(Clock.currentTimeMillis, (now) => standingOf(task, now)))
    serve("tasks/update", (task, given) =>
      Effect.sync(() => {
        task.asked = Object.fromEntries(Object.entries(task.asked).filter(([key]) => !(key in given)))
        return {}
      })
    )
    serve("tasks/cancel", (task) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        task.isCancelled ||= ["working", "input_required"].includes(standingOf(task, now).status)
        return {}
      })
    )
  }

  return { tools, extend, newerCapabilities: { extensions: { [tasksExtension]: {} } } }
})
