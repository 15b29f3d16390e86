/**
 * The agent whose steps are measured: it asks a model without latency and calls one tool, again and again.
 */

/** Calls a tool that finds nothing so often, and then says that it is done. */
export const stepsOf = (count: number) => ({
  rules: [
    {
      when: `step < ${count}`,
      calls: [{ tool: "search_objects", arguments: { type: "Nothing", limit: 1 } }]
    },
    { say: "Done." }
  ]
})

/** An agent that calls the same tool with the same arguments as often as it is told to. */
export const stepper = (name: string, count: number) => ({
  name,
  prompt: "Look again and again.",
  triggerType: "manual",
  executionMode: "execute",
  tools: ["graph.search_objects"],
  repeatableTools: ["graph.search_objects"],
  maxPendingRuns: 10_000,
  model: { provider: "scripted", name: "bench", script: stepsOf(count) }
})
