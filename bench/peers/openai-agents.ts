/**
 * OpenAI's Agents SDK with a model of our own: a run in memory, with nothing kept and nothing traced.
 */
import { Agent, type Model, run, setTracingDisabled, tool, Usage } from "@openai/agents"
import { z } from "zod"
import { medianPerStep, serveActs, toolCall } from "./acts.ts"

setTracingDisabled(true)

const search = tool({
  name: toolCall.name,
  description: "Finds objects.",
  parameters: z.object({ type: z.string(), limit: z.number() }),
  execute: () => Promise.resolve(toolCall.result)
})

/** Calls the tool so often, and then says that it is done. */
const modelOf = (steps: number): Model => {
  let asked = 0
  return {
    getResponse: () => {
      const request = asked++
      return Promise.resolve({
        usage: new Usage(),
        output:
          request < steps
            ? [
                {
                  type: "function_call",
                  callId: `call_${request}`,
                  name: toolCall.name,
                  status: "completed",
                  arguments: JSON.stringify(toolCall.arguments)
                }
              ]
            : [
                {
                  type: "message",
                  role: "assistant",
                  status: "completed",
                  content: [{ type: "output_text", text: "Done." }]
                }
              ]
      })
    },
    getStreamedResponse: () => {
      throw new Error("Nobody streams here")
    }
  }
}

serveActs({
  loop: (input: { readonly steps: number; readonly times: number }) =>
    medianPerStep(input, async () => {
      const agent = new Agent({
        name: "bench",
        instructions: "Look again and again.",
        model: modelOf(input.steps),
        tools: [search]
      })
      const { finalOutput } = await run(agent, "Begin.", { maxTurns: input.steps + 1 })
      if (finalOutput !== "Done.") throw new Error(`The Agents SDK said ${JSON.stringify(finalOutput)}`)
    })
})
