/**
 * Takes out of a server's list the tools that are not described as MCP says.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * The SDK refuses a whole list for one tool in it. Here the one is left out,
 * with what is wrong with it, before the SDK reads the message.
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
