/**
 * A project with something of every kind that an address can name.
 */
import { Effect } from "effect"
import { creating, promoted } from "./autonomy-words.ts"
import { newConversation } from "./conversation-words.ts"
import { addServer } from "./mcp-words.ts"
import { sendResponse } from "./openai-words.ts"
import type { Json, Story } from "./platform.ts"
import { entriesWhen, feedOf, make, saying, watcher } from "./story-words.ts"

/** The id of one thing of each kind, by the name that addresses give it. */
export type Furniture = Readonly<Record<string, string>>

/** Furnishes a project; `word` is in the names that people give, and has the same length everywhere. */
export const furnish = Effect.fn("furnish")(function* (story: Story, word: string) {
  const agent = yield* story.post("/agents", watcher({ name: `${word}-agent`, tools: [] }))
  const [one, two] = [yield* make(story, "Person", { of: word }), yield* make(story, "Person")]
  const relationship = yield* story.post("/relationships", { type: "NEAR", fromId: one.id, toId: two.id })
  const [entry] = yield* entriesWhen(story, agent, 2)
  const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
  const name = `${word}-context`
  yield* story.post("/contexts", { name, agentId: agent.id })
  yield* story.post(`/contexts/${name}/events`, { type: "UserMessageEvent", content: word })
  const send = (path: string, text: string, contentType: string) =>
    story.send("POST", `/api/projects/${story.projectId}${path}`, new TextEncoder().encode(text), {
      "content-type": contentType
    })
  const file = yield* send("/attachments", `A file of ${word}`, "text/plain")
  const importId = crypto.randomUUID()
  yield* send(
    `/import?format=jsonl&id=${importId}`,
    '{"kind":"object","type":"Thing","properties":{}}\n',
    "application/octet-stream"
  )
  const userId = `${word}-member`
  yield* story.post("/members", { userId, role: "viewer" })
  const token = yield* story.post("/tokens", { name: word, userId })
  return {
    userId,
    tokenId: token.id,
    sessionId: yield* sessionOf(story, userId),
    objectId: one.id,
    relationshipId: relationship.id,
    ...(yield* eventIds(story)),
    importId,
    agentId: agent.id,
    model: agent.name,
    responseId: yield* responseOf(story, agent, word),
    entryId: entry.id,
    runId: run.id,
    name,
    comparisonId: (yield* compare(story, name)).id,
    conversationId: (yield* newConversation(story, agent, word)).id,
    backtestId: (yield* story.post(`/agents/${agent.id}/backtests`, { days: 1 })).id,
    digest: file.body.digest,
    taskId: (yield* story.post("/tasks", { title: word })).id,
    mcpServerId: (yield* addServer(story, { type: "stdio", command: "/nowhere/at-all" })).id,
    ...(yield* webhookIn(story)),
    ...(yield* promotionIn(story))
  } satisfies Furniture
})

/** A response of an agent that says nothing of this. */
const responseOf = (story: Story, agent: Json, word: string) =>
  Effect.map(
    sendResponse(story, { model: agent.name, input: word, background: true }),
    ({ body }): string => body.id
  )

/** The session of a member who came in by a link. */
const sessionOf = Effect.fnUntraced(function* (story: Story, userId: string) {
  const { url } = yield* story.post(`/members/${userId}/login-link`)
  const answer = yield* story.send("GET", url.slice(story.url.length), undefined, { authorization: "" })
  const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";", 1)
  const mine = yield* story.send("GET", "/api/me/sessions", undefined, { authorization: "", cookie })
  return mine.body.items[0].id as string
})

const eventIds = (story: Story) =>
  Effect.map(feedOf(story, 3), ([event]: ReadonlyArray<Json>) => ({
    eventId: event.id,
    rootEventId: event.id
  }))

const compare = (story: Story, name: string) =>
  story.post(`/contexts/${name}/comparisons`, {
    content: "Which?",
    variants: [
      { label: "a", content: "A?" },
      { label: "b", content: "B?" }
    ]
  })

/** A webhook and its agent, whose id an address names before it. */
const webhookIn = Effect.fnUntraced(function* (story: Story) {
  const agent = yield* story.post("/agents", {
    name: "called",
    prompt: "Listen.",
    triggerType: "webhook",
    model: saying("Heard.")
  })
  const webhook = yield* story.post(`/agents/${agent.id}/webhooks`, {})
  return { "agentId of webhooks": agent.id, webhookId: webhook.id }
})

const promotionIn = Effect.fnUntraced(function* (story: Story) {
  const { agent, promotion } = yield* promoted(story, { note: creating("Note") }, "note")
  return { "agentId of promotions": agent.id, promotionId: promotion.id }
})
