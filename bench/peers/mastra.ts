/**
 * Mastra: an agent with memory on PostgreSQL that saves its messages while it works (`savePerStep`).
 *
 * What is to be saved is collected for a moment first, so with a model that
 * answers at once several steps are kept together, and none waits for it.
 * A thread is what Tropism calls a context. It is opened whole, as it is for a
 * page that shows it; by itself an agent is shown its last ten messages.
 */
import { Agent } from "@mastra/core/agent"
import { Mastra } from "@mastra/core/mastra"
import { MastraLanguageModelV2Mock } from "@mastra/core/test-utils/llm-mock"
import { createTool } from "@mastra/core/tools"
import { Memory } from "@mastra/memory"
import { PostgresStore } from "@mastra/pg"
import { z } from "zod"
import { databaseUrl, medianPerStep, nowMs, serveActs, toolCall } from "./acts.ts"

const storage = new PostgresStore({ id: "bench", connectionString: databaseUrl })
await storage.init()
const memory = new Memory({ storage })

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }

/** What the model says next: a call of the tool, or words. */
type Next = (request: number) => { readonly say: string } | { readonly callId: string }

const modelOf = (next: Next) => {
  let request = 0
  return new MastraLanguageModelV2Mock({
    doStream: () => {
      const said = next(request++)
      const parts =
        "say" in said
          ? [
              { type: "text-start", id: "text" },
              { type: "text-delta", id: "text", delta: said.say },
              { type: "text-end", id: "text" },
              { type: "finish", finishReason: "stop", usage }
            ]
          : [
              {
                type: "tool-call",
                toolCallId: said.callId,
                toolName: toolCall.name,
                input: JSON.stringify(toolCall.arguments)
              },
              { type: "finish", finishReason: "tool-calls", usage }
            ]
      return Promise.resolve({
        stream: new ReadableStream({
          start: (controller) => {
            for (const part of [{ type: "stream-start", warnings: [] }, ...parts])
              controller.enqueue(part as never)
            controller.close()
          }
        })
      })
    }
  })
}

const search = createTool({
  id: toolCall.name,
  description: "Finds objects.",
  inputSchema: z.object({ type: z.string(), limit: z.number() }),
  execute: () => Promise.resolve(toolCall.result)
})

const agentOf = (next: Next): Agent => {
  const bench = new Agent({
    id: "bench",
    name: "bench",
    instructions: "Look again and again.",
    model: modelOf(next),
    tools: { [toolCall.name]: search },
    memory
  })
  return new Mastra({ agents: { bench }, storage, logger: false }).getAgent("bench")
}

let made = 0
const newThread = (): string => `thread-${process.pid}-${made++}`

const say = async (agent: Agent, text: string, thread: string, maxSteps: number): Promise<string> => {
  const answer = await agent.stream(text, {
    memory: { thread, resource: "bench" },
    savePerStep: true,
    maxSteps
  })
  return answer.text
}

const threads = new Map<string, string>()

serveActs(
  {
    steps: (input: { readonly steps: number; readonly times: number }) =>
      medianPerStep(input, async () => {
        const agent = agentOf((request) =>
          request < input.steps ? { callId: `call_${request}` } : { say: "Done." }
        )
        const text = await say(agent, "Begin.", newThread(), input.steps + 1)
        if (text !== "Done.") throw new Error(`Mastra said ${JSON.stringify(text)}`)
      }),
    /** Makes a context of so many messages. */
    fill: async ({ messages, name }: { readonly messages: ReadonlyArray<string>; readonly name: string }) => {
      const threadId = newThread()
      threads.set(name, threadId)
      await memory.createThread({ threadId, resourceId: "bench" })
      const begun = Date.now()
      for (let from = 0; from < messages.length; from += 500)
        await memory.saveMessages({
          messages: messages.slice(from, from + 500).map((text, index) => ({
            id: `${threadId}-${from + index}`,
            threadId,
            resourceId: "bench",
            role: "user" as const,
            createdAt: new Date(begun + from + index),
            content: { format: 2 as const, parts: [{ type: "text" as const, text }], content: text }
          }))
        })
    },
    /** Opens a context and answers how long that took and how many messages are in it. */
    open: async ({ name }: { readonly name: string }) => {
      const begun = nowMs()
      const { messages } = await memory.recall({
        threadId: threads.get(name) ?? "",
        resourceId: "bench",
        perPage: false
      })
      return { ms: nowMs() - begun, count: messages.length }
    }
  },
  () => storage.close()
)
