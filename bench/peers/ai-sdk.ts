/**
 * The AI SDK's ToolLoopAgent with its own mock of a model: a run in memory, with nothing kept.
 */
import { isStepCount, tool, ToolLoopAgent } from "ai"
import { MockLanguageModelV4 } from "ai/test"
import { z } from "zod"
import { medianPerStep, serveActs, toolCall } from "./acts.ts"

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}

/** Calls the tool so often, and then says that it is done. */
const agentOf = (steps: number) => {
  let asked = 0
  const input = JSON.stringify(toolCall.arguments)
  return new ToolLoopAgent({
    instructions: "Look again and again.",
    model: new MockLanguageModelV4({
      doGenerate: () => {
        const request = asked++
        return Promise.resolve({
          content:
            request < steps
              ? [{ type: "tool-call", toolCallId: `call_${request}`, toolName: toolCall.name, input }]
              : [{ type: "text", text: "Done." }],
          finishReason: { unified: request < steps ? "tool-calls" : "stop", raw: undefined },
          usage,
          warnings: []
        })
      }
    }),
    tools: {
      [toolCall.name]: tool({
        description: "Finds objects.",
        inputSchema: z.object({ type: z.string(), limit: z.number() }),
        execute: () => Promise.resolve(toolCall.result)
      })
    },
    stopWhen: isStepCount(steps + 1)
  })
}

serveActs({
  loop: (input: { readonly steps: number; readonly times: number }) =>
    medianPerStep(input, async () => {
      const { text } = await agentOf(input.steps).generate({ prompt: "Begin." })
      if (text !== "Done.") throw new Error(`The AI SDK said ${JSON.stringify(text)}`)
    })
})
