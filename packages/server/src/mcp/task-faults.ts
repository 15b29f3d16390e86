/**
 * What cannot be done with a task, in the words of JSON-RPC.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server"
import { badParams, fault } from "./door-server.ts"

/** A task that is missing, another project's, or no id at all. */
export const noTask = (): ProtocolError => badParams("There is no such task")

type Problem = ProtocolError | { readonly _tag: string; readonly detail?: string | undefined }

/** A refusal; a task that may not be seen is not there. */
export const told = (problem: Problem): ProtocolError => {
  if (problem instanceof ProtocolError) return problem
  if (problem._tag === "NotFound") return noTask()
  const words = problem.detail ?? "The task cannot do this now"
  return problem._tag === "Forbidden" ? fault(ProtocolErrorCode.InvalidRequest, words) : badParams(words)
}
