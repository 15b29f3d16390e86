/**
 * A page with a chat in it: the token stays in this server, the browser gets the words as they are said.
 */
import { createServer } from "node:http"
import { text } from "node:stream/consumers"
import { createClient } from "@tropism/client"

const client = createClient({
  url: process.env["TROPISM_URL"] ?? "http://127.0.0.1:4400",
  token: process.env["TROPISM_TOKEN"],
  project: process.env["TROPISM_PROJECT"]
})

const agent = await client.agents.create({
  name: "receptionist",
  prompt: "You answer visitors in one sentence.",
  tools: [],
  triggerType: "manual",
  executionMode: "suggest",
  // Rules instead of a language model; without this block the server's default model does it.
  model: {
    provider: "scripted",
    name: "receptionist",
    script: {
      rules: [{ say: "You said “{{ message }}”, and that is message {{ turn }}.", tokensPerSecond: 50 }]
    }
  }
})

const page = `<!doctype html><meta charset="utf-8"><title>Reception</title>
<ol id="said"></ol><form><input name="message" autofocus autocomplete="off"><button>Say</button></form>
<script type="module">
  let conversation = ""
  document.forms[0].onsubmit = async (event) => {
    event.preventDefault()
    const { message } = event.target
    const item = document.querySelector("#said").appendChild(document.createElement("li"))
    const answer = await fetch("/say?in=" + conversation, { method: "POST", body: message.value })
    conversation = answer.headers.get("conversation")
    message.value = ""
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    for (let part; !(part = await reader.read()).done; ) item.append(part.value)
  }
</script>`

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://chat")
  if (request.method !== "POST" || pathname !== "/say") {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page)
    return
  }
  const gone = new AbortController()
  response.on("close", () => gone.abort())
  try {
    const conversationId = searchParams.get("in")
    const message = {
      message: await text(request),
      ...(conversationId ? { conversationId } : { agentId: agent.id })
    }
    for await (const event of client.chatEvents(message, { signal: gone.signal })) {
      if (event.type === "begun" && !response.headersSent)
        response.writeHead(200, {
          "content-type": "text/plain; charset=utf-8",
          conversation: event.conversationId
        })
      if (event.type === "words") response.write(event.text)
    }
    response.end()
  } catch (error) {
    if (!response.headersSent) response.writeHead(502)
    response.end(error instanceof Error ? error.message : "That did not work.")
  }
})

server.listen(Number(process.env["CHAT_PORT"] ?? 4500), "127.0.0.1", () => {
  const address = server.address()
  console.log(`Open http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`)
})
