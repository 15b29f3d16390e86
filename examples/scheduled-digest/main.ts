/**
 * Makes an agent that reports on the graph every morning at eight, and asks it for its report now.
 */
import { createClient } from "@tropism/client"

const client = createClient({
  url: process.env["TROPISM_URL"] ?? "http://127.0.0.1:4400",
  token: process.env["TROPISM_TOKEN"],
  project: process.env["TROPISM_PROJECT"]
})

const agent = await client.agents.create({
  name: "morning-digest",
  prompt: "Say how many findings there are. Change nothing.",
  tools: ["graph.search_objects"],
  triggerType: "schedule",
  cronSchedule: "0 8 * * *",
  timezone: "Europe/Berlin",
  executionMode: "suggest",
  // Rules instead of a language model; without this block the server's default model does it.
  model: {
    provider: "scripted",
    name: "digest",
    script: {
      rules: [
        {
          when: "step == 0",
          calls: [{ tool: "search_objects", arguments: { type: "Finding", limit: 10 } }]
        },
        { say: "There are {{ results[0].result.total }} findings." }
      ]
    }
  }
})

const [next] = (await client.agents.schedule(agent.id)).fires
console.log(`It will report at ${next?.localTime.slice(11, 16)}.`)

for (const title of ["A key without an end", "A script that runs on install"])
  await client.objects.create({ type: "Finding", properties: { title } })

const { id } = await client.agents.trigger(agent.id, {})
// A run that takes long is answered before it has ended; what it does is told until then.
for await (const said of client.runEvents(id, { after: "start" }))
  if (said.type === "ToolCallStartedEvent") console.log(`It calls ${said.tool}.`)
const run = await client.runs.get(id)
console.log(`${run.status}: ${run.summary}`)
for await (const finding of client.objects.list({ type: "Finding", limit: 1 }))
  console.log(`- ${finding.properties.title}`)
