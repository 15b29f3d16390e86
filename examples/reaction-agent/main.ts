/**
 * Makes an agent that greets whoever comes into the graph, lets somebody come, and shows what the agent did.
 */
import { createClient } from "@tropism/client"

const client = createClient({
  url: process.env["TROPISM_URL"] ?? "http://127.0.0.1:4400",
  token: process.env["TROPISM_TOKEN"],
  project: process.env["TROPISM_PROJECT"]
})

const agent = await client.agents.create({
  name: "greeter",
  prompt: 'Greet who came:\n```json\n{"name": {{ object.properties.name | json }}}\n```',
  tools: ["graph.create_object"],
  triggerType: "reaction",
  reactionConfig: { objectTypes: ["Person"], events: ["created"] },
  executionMode: "execute",
  // Rules instead of a language model; without this block the server's default model does it.
  model: {
    provider: "scripted",
    name: "greeter",
    script: {
      rules: [
        {
          when: "step == 0",
          calls: [
            {
              tool: "create_object",
              arguments: { type: "Greeting", properties: { text: "Welcome, {{ input.name }}!" } }
            }
          ]
        },
        { say: "I greeted {{ input.name }}." }
      ]
    }
  }
})
console.log(`Made ${agent.name}.`)

const events = client.events({ after: 0 })
await client.objects.create({ type: "Person", properties: { name: "Ada" } })
for await (const event of events) {
  console.log(`${event.type} ${event.objectType} by ${event.actorType}`)
  if (event.objectType !== "Greeting") continue
  const greeting = await client.objects.get(event.entityId)
  console.log(greeting.properties.text)
  for await (const said of client.runEvents(event.runId ?? "", { after: "start" }))
    if (said.type === "AssistantMessageEvent" && said.content !== "") console.log(said.content)
  break
}
