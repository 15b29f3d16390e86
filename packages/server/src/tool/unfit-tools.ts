/**
 * Repairs a server's list of tools before the SDK reads it, which refuses a whole list for one fault in it.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * A tool that is not described as MCP requires is left out, with the reason. A cursor that leads nowhere (null, empty
 * text, or one that the list had before) ends the list.
 */
import { type JSONRPCMessage, specTypeSchemas, type Transport } from "@modelcontextprotocol/client"
import { isJsonObject } from "@tropism/domain/json"
import { beginningOf } from "@tropism/domain/text-beginning"
import { foreignLimits } from "./foreign-limits.ts"
import { lineOf } from "./foreign-fault.ts"

/** Listens to what comes in before the SDK does; `onUnfit` is told each tool that is left out, and why. */
export const leaveOutUnfitTools = (wire: Transport, onUnfit: (tool: string) => void): void => {
  // The SDK calls a listener that was there before its own, with the same message.
  const { onmessage: before } = wire
  const cursors = new Set<string>()
  const onmessage = (message: JSONRPCMessage) => {
    before?.(message)
    if (!("result" in message) || !isJsonObject(message.result)) return
    const { content, tools } = message.result
    // What a call answers has a content and may have whatever else.
    if (content !== undefined || !Array.isArray(tools)) return
    const fit = tools.filter((tool) => {
      const fault = faultOf(tool)
      if (fault !== undefined) onUnfit(`${nameOf(tool)} (${fault})`)
      return fault === undefined
    })
    if (fit.length < tools.length) Object.assign(message.result, { tools: fit })
    const { nextCursor } = message.result
    if (typeof nextCursor === "string" && nextCursor !== "" && !cursors.has(nextCursor))
      return void cursors.add(nextCursor)
    cursors.clear()
    delete message.result["nextCursor"]
  }
  Object.assign(wire, { onmessage })
}

const faultOf = (tool: unknown): string | undefined => {
  const judged = specTypeSchemas.Tool["~standard"].validate(tool)
  if (judged instanceof Promise || judged.issues === undefined) return undefined
  const [issue] = judged.issues
  const path = (issue?.path ?? []).map((step) => String(typeof step === "object" ? step.key : step))
  return lineOf([path.join("."), issue?.message ?? ""].filter((part) => part !== "").join(": "))
}

const nameOf = (tool: unknown): string =>
  isJsonObject(tool) && typeof tool["name"] === "string" && tool["name"] !== ""
    ? beginningOf(lineOf(tool["name"]), foreignLimits.leftOutNameMaxChars)
    : "one without a name"
