/**
 * One call over a connection, from the request to what it came to.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * A server may answer at once, with a task, or with questions of its own. The
 * first two end as an answer; questions end as a fault that repeats them.
 */
import {
  type CallToolResult,
  type Client,
  isInputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type Tool
} from "@modelcontextprotocol/client"
import { Effect } from "effect"
import { toolLimits } from "../limits.ts"
import { foreignLimits } from "./foreign-limits.ts"
import { faultLike, ForeignFault, lineOf, toFault } from "./foreign-fault.ts"
import { awaitTask, taskIn } from "./foreign-tasks.ts"
import { wantedIn, type Wanted, wantsWords } from "./server-wants.ts"

export type CallTool = (
  tool: Pick<Tool, "name" | "inputSchema">,
  args: Record<string, unknown>
) => Effect.Effect<CallToolResult, ForeignFault>

/** Makes calls over a client's connection; what the server asks for meanwhile is refused, and told. */
export const makeCalls = (client: Client): CallTool => {
  const wanted: Array<Wanted> = []
  let dropped = 0
  // A server of the revision before asks by a request of its own.
  client.fallbackRequestHandler = ({ method, params }) => {
    wanted.push({ method, params })
    if (wanted.length > foreignLimits.wantedTold) {
      wanted.shift()
      dropped += 1
    }
    return Promise.reject(
      new ProtocolError(
        ProtocolErrorCode.MethodNotFound,
        "Nobody answers this here: no capability was declared for it"
      )
    )
  }
  return (tool, args) =>
    Effect.suspend(() => {
      const before = dropped + wanted.length
      /** What was asked for since the call began; another call may have been why. */
      const since = () => wanted.slice(Math.max(0, before - dropped))
      return ask(client, tool, args).pipe(
        Effect.flatMap((answer) => {
          const taskId = taskIn(answer)
          return taskId === undefined ? Effect.succeed(answer) : awaitTask(client, taskId)
        }),
        Effect.map((answer) =>
          answer.isError === true && since().length > 0
            ? {
                ...answer,
                content: [...answer.content, { type: "text" as const, text: wantsWords(since()) }]
              }
            : answer
        ),
        Effect.mapError((fault) =>
          since().length === 0
            ? fault
            : faultLike(fault, {
                message: lineOf(`${fault.message}. ${wantsWords(since())}`),
                isOurs: false
              })
        )
      )
    })
}

const ask = (client: Client, tool: Pick<Tool, "name" | "inputSchema">, args: Record<string, unknown>) =>
  Effect.tryPromise({
    try: (signal) =>
      client.callTool(
        { name: tool.name, arguments: args },
        {
          allowInputRequired: true,
          timeout: toolLimits.sdkTimeoutMs,
          signal,
          toolDefinition: { name: tool.name, inputSchema: tool.inputSchema }
        }
      ),
    catch: toFault
  }).pipe(
    Effect.flatMap((answer): Effect.Effect<CallToolResult, ForeignFault> =>
      isInputRequiredResult(answer)
        ? Effect.fail(
            new ForeignFault({
              outcome: "answered",
              message: lineOf(wantsWords(wantedIn(answer.inputRequests))),
              isBroken: false
            })
          )
        : Effect.succeed(answer)
    )
  )
