/**
 * A program of somebody who has the package and nothing else: it does a little of everything and tells what came of it.
 */
import { createClient, isProblem } from "@tropism/client"

export const run = async (url: string, token: string, project: string) => {
  const client = createClient({ url, token, project })
  const first = await client.objects.create({ type: "Book", key: "one", properties: { number: 1 } })
  for (const number of [2, 3, 4, 5]) await client.objects.create({ type: "Book", properties: { number } })
  const listed: Array<unknown> = []
  for await (const book of client.objects.list({ type: "Book", limit: 2 }))
    listed.push(book.properties["number"])

  const followed: Array<number | null> = []
  for await (const event of client.events({ after: 0 })) if (followed.push(event.position) === 5) break

  const agent = await client.agents.create({
    name: "teller",
    prompt: "Tell it.",
    triggerType: "manual",
    executionMode: "suggest",
    tools: [],
    model: {
      provider: "scripted",
      name: "teller",
      script: {
        rules: [
          { say: "alpha bravo charlie delta echo foxtrot golf hotel india juliett", tokensPerSecond: 15 }
        ]
      }
    }
  })
  const pieces: Array<string> = []
  let response = ""
  for await (const event of client.chatEvents({ agentId: agent.id, message: "Tell me" })) {
    if (event.type === "words") pieces.push(event.text)
    if (event.type === "done") response = event.answer.response
  }

  const problem: unknown = await client.objects
    .create({ type: "Book", key: "one" })
    .catch((error: unknown) => error)
  const told = isProblem(problem, "conflict")
    ? { status: problem.status, code: problem.code, isTheFirst: problem.problem.existingId === first.id }
    : undefined
  const missing: unknown = await client.tasks.get(first.id).catch((error: unknown) => error)
  const type = isProblem(missing) ? missing.type : undefined
  return { listed, followed, pieces, response, problem: told, type }
}
