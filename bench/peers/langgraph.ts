/**
 * LangGraph: a graph of a model and its tools, with the checkpointer on PostgreSQL and `durability: "sync"`.
 *
 * The model is a node that answers at once. A thread is what Tropism calls a
 * context; its checkpoints hold the messages.
 */
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages"
import { tool } from "@langchain/core/tools"
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph"
import { ToolNode } from "@langchain/langgraph/prebuilt"
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres"
import { z } from "zod"
import { databaseUrl, medianPerStep, nowMs, serveActs, toolCall } from "./acts.ts"

const checkpointer = PostgresSaver.fromConnString(databaseUrl)
await checkpointer.setup()

const search = tool(() => Promise.resolve(JSON.stringify(toolCall.result)), {
  name: toolCall.name,
  description: "Finds objects.",
  schema: z.object({ type: z.string(), limit: z.number() })
})

let thread = 0
const newThread = (): string => `thread-${process.pid}-${thread++}`

const configOf = (threadId: string) => ({
  configurable: { thread_id: threadId },
  durability: "sync" as const,
  recursionLimit: 100_000
})

/** Calls the tool so often, and then says that it is done. */
const stepper = (steps: number) =>
  new StateGraph(MessagesAnnotation)
    .addNode("model", ({ messages }) => {
      const asked = messages.filter((message) => message.type === "ai").length
      return {
        messages: [
          asked < steps
            ? new AIMessage({
                content: "",
                tool_calls: [{ id: `call_${asked}`, name: toolCall.name, args: toolCall.arguments }]
              })
            : new AIMessage("Done.")
        ]
      }
    })
    .addNode("tools", new ToolNode([search]))
    .addEdge(START, "model")
    .addConditionalEdges("model", ({ messages }) =>
      (messages.at(-1) as AIMessage).tool_calls?.length ? "tools" : END
    )
    .addEdge("tools", "model")
    .compile({ checkpointer })

/** Answers each message with the same words. */
const speaker = (answer: string) =>
  new StateGraph(MessagesAnnotation)
    .addNode("model", () => ({ messages: [new AIMessage(answer)] }))
    .addEdge(START, "model")
    .addEdge("model", END)
    .compile({ checkpointer })

const threads = new Map<string, string>()

serveActs(
  {
    steps: (input: { readonly steps: number; readonly times: number }) => {
      const graph = stepper(input.steps)
      return medianPerStep(input, () =>
        graph.invoke({ messages: [new HumanMessage("Begin.")] }, configOf(newThread()))
      )
    },
    /** Takes a turn for each message and answers how many milliseconds each took. */
    converse: async ({ answer, messages, name }: ConverseInput) => {
      const threadId = threads.get(name) ?? newThread()
      threads.set(name, threadId)
      const graph = speaker(answer)
      const durations: Array<number> = []
      for (const message of messages) {
        const begun = nowMs()
        await graph.invoke({ messages: [new HumanMessage(message)] }, configOf(threadId))
        durations.push(nowMs() - begun)
      }
      return durations
    },
    /** Makes a context of so many messages. */
    fill: async ({ messages, name }: { readonly messages: ReadonlyArray<string>; readonly name: string }) => {
      const threadId = newThread()
      threads.set(name, threadId)
      const said: ReadonlyArray<BaseMessage> = messages.map((text) => new HumanMessage(text))
      await speaker("Yes.").updateState(configOf(threadId), { messages: [...said] }, "model")
    },
    /** Opens a context and answers how long that took and how many messages are in it. */
    open: async ({ name }: { readonly name: string }) => {
      const begun = nowMs()
      const state = await speaker("Yes.").getState(configOf(threads.get(name) ?? ""))
      return { ms: nowMs() - begun, count: state.values.messages.length }
    }
  },
  () => checkpointer.end()
)

interface ConverseInput {
  readonly name: string
  readonly answer: string
  readonly messages: ReadonlyArray<string>
}
