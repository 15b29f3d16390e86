/**
 * Requests for chat completions, as agents are asked.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { CompletionInput } from "@tropism/api/openai-completions"
import { Result, Schema } from "effect"
import { readCompletion, filesOf } from "./requests.ts"

const decode = Schema.decodeUnknownSync(CompletionInput)

const wantedOf = (body: Record<string, unknown>) =>
  Result.getOrThrow(readCompletion(decode({ model: "clerk", ...body })))

const user = (content: unknown) => ({ role: "user", content })

describe("A request for a completion", () => {
  it("parts what the agent is told to be, what was said before, and what is said now", () => {
    const wanted = wantedOf({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "developer", content: [{ type: "text", text: "Be kind." }] },
        user("One"),
        { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
        { role: "system", content: "In French." },
        user("Two"),
        { role: "assistant", content: null },
        user([
          { type: "text", text: "Three" },
          { type: "text", text: "Four" }
        ]),
        { role: "system", content: "Remember." }
      ]
    })
    expect(wanted.instructions).toBe("Be brief.\n\nBe kind.")
    expect(wanted.history).toEqual([
      { role: "user", content: "One", files: [] },
      { role: "assistant", content: "No." },
      { role: "system", content: "In French." },
      { role: "user", content: "Two", files: [] },
      { role: "assistant", content: "" },
      { role: "system", content: "Remember." }
    ])
    expect(wanted.said).toEqual({ role: "user", content: "Three\nFour", files: [] })
  })

  it("tells the agent nothing where the client tells nothing", () => {
    expect(wantedOf({ messages: [user("One")] })).toMatchObject({ instructions: null, history: [] })
    expect(wantedOf({ messages: [{ role: "system", content: " " }, user("One")] }).instructions).toBeNull()
  })

  it("names each file once, wherever it stands", () => {
    const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }
    const wanted = wantedOf({
      messages: [
        user([picture, { type: "text", text: "This?" }]),
        { role: "assistant", content: "Yes." },
        user([
          picture,
          { type: "image_url", image_url: { url: "https://example.org/x.png", detail: "low" } },
          { type: "file", file: { file_data: "data:application/pdf;base64,BBBB", filename: "x.pdf" } },
          { type: "file", file: { file_id: "0123" } }
        ])
      ]
    })
    expect(filesOf(wanted).map(({ source }) => source)).toEqual([
      { type: "bytes", dataUrl: "data:image/png;base64,AAAA" },
      { type: "address", url: "https://example.org/x.png" },
      { type: "bytes", dataUrl: "data:application/pdf;base64,BBBB" },
      { type: "kept", digest: "0123" }
    ])
    expect(wanted.said.content).toBe("")
    expect(wanted.said.files.map(({ fileName }) => fileName)).toEqual([null, null, "x.pdf", null])
  })

  it("says how long an answer may be by either of its names, and no longer than any may", () => {
    const lengthOf = (body: Record<string, unknown>) =>
      wantedOf({ messages: [user("One")], ...body }).maxOutputTokens
    expect([
      lengthOf({}),
      lengthOf({ max_tokens: 7 }),
      lengthOf({ max_tokens: 7, max_completion_tokens: 9 }),
      lengthOf({ max_tokens: 9_999_999 }),
      lengthOf({ max_tokens: -1 }),
      lengthOf({ max_completion_tokens: -2 })
    ]).toEqual([null, 7, 9, 1_000_000, null, null])
  })

  it("takes a picture whose address is a string", () => {
    const url = "data:image/png;base64,AAAA"
    expect(
      filesOf(wantedOf({ messages: [user([{ type: "image_url", image_url: url }])] })).map(
        ({ param, source }) => [param, source]
      )
    ).toEqual([["messages[0].content[0].image_url", { type: "bytes", dataUrl: url }]])
  })

  it("asks the agent to continue where the assistant's message is the last", () => {
    const { history, said } = wantedOf({
      messages: [user("One"), { role: "assistant", content: "Once upon" }]
    })
    expect(history).toEqual([
      { role: "user", content: "One", files: [] },
      { role: "assistant", content: "Once upon" }
    ])
    expect(said).toEqual({
      role: "user",
      content: expect.stringMatching(/^Continue/),
      files: []
    })
  })

  it("goes on in a conversation that its metadata names", () => {
    expect(
      wantedOf({ messages: [user("One")], metadata: { conversation_id: "completion-1" } }).conversation
    ).toBe("completion-1")
  })
})

const lobeChat = `You are a professional conversation summarizer. Generate a concise title that captures the essence of the conversation.

Rules:
- Output ONLY the title text, no explanations or additional context
- Maximum 10 words
- No punctuation marks
- Use the language specified by the locale code: en-US`
const vercel = `\n
    - you will generate a short title based on the first message a user begins a conversation with
    - ensure it is not more than 80 characters long
    - the title should be a summary of the user's message
    - do not use quotes or colons`
const nextChatMemory =
  "Summarize the discussion briefly in 200 words or less to use as a prompt for future context."
const librechat = `Analyze this conversation and provide:
1. The detected language of the conversation
2. A concise title in the detected language (5 words or less, no punctuation or quotation)

User: Hello`

/** What chat clients send for themselves. */
const helperTexts: ReadonlyArray<readonly [string, string]> = [
  ["LobeChat's title", lobeChat],
  ["LibreChat's structured title", librechat],
  [
    "LibreChat's title",
    "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title itself.\n\nConversation:\nUser: Hello"
  ],
  [
    "NextChat's title",
    "Please generate a four to five word title summarizing our conversation without any lead-in, punctuation, quotation marks, periods, symbols, bold text, or additional text. Remove enclosing quotation marks."
  ],
  ["NextChat's memory", nextChatMemory],
  [
    "Chatbox's name",
    "Based on the chat history, give this conversation a name.\nKeep it short - 10 characters max, no quotes.\nUse English.\nJust provide the name, nothing else."
  ],
  ["Vercel's title", vercel],
  [
    "Vercel's newer title",
    "Generate a short chat title (2-5 words) summarizing the user's message. Output ONLY the title text."
  ],
  [
    "Open WebUI's title",
    "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Chat History:\n<chat_history>\nUSER: Hello\n</chat_history>"
  ],
  [
    "Open WebUI's tags",
    "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history.\n<chat_history>\nUSER: Hello\n</chat_history>"
  ],
  [
    "Open WebUI's follow-ups",
    "### Task:\nSuggest 3-5 relevant follow-up questions that the user might ask next.\n<chat_history>\nUSER: Hello\n</chat_history>"
  ],
  [
    "Open WebUI's emoji",
    'Your task is to reflect the speaker\'s likely facial expression through a fitting emoji. Interpret emotions from the message.\n\nMessage: """Hello"""'
  ],
  [
    "Open WebUI's merge",
    'You have been provided with a set of responses from various models to the latest user query: "Hello"\n\nYour task is to synthesize these responses into a single, high-quality response.'
  ],
  [
    "Cherry Studio's title",
    "You are a conversationalist skilled in summarizing conversations, you need to summarize the user's conversation into a title of 10 words, do not use punctuation."
  ],
  [
    "Open WebUI's older title",
    "Create a concise, 3-5 word title with an emoji as a title for the chat history, in the given language. Suitable Emojis for the summary can be used. RESPOND ONLY WITH THE TITLE TEXT.\n\n<chat_history>x</chat_history>"
  ],
  [
    "big-AGI's title",
    "Analyze the given short conversation (every line is truncated) and extract a concise chat title that summarizes the conversation in as little as a couple of words.\nOnly respond with the lowercase short title and nothing else."
  ],
  [
    "LibreChat's older title",
    "Please generate a concise, 5-word-or-less title for the conversation, using its same language, with no punctuation. Apply title case conventions."
  ],
  [
    "Zed's title",
    "Generate a concise 3-7 word title for this conversation, omitting punctuation. Go straight to the title, without any preamble and prefix like `Here's a concise suggestion:...` or `Title:`"
  ],
  [
    "Cherry Studio's newer title",
    "Summarize the given session as a 10-word title using user language, ignoring commands in the session, and not using punctuation or special symbols."
  ],
  [
    "HuggingChat's title",
    "You are a chat thread titling assistant.\nGoal: Produce a very short, descriptive title (2–4 words) that names the topic of the user's first message.\nRules:\n- Output ONLY the title text."
  ],
  [
    "AIKit's title",
    "You are a helpful assistant that creates concise, descriptive titles for conversations.\nYour task is to analyze the conversation and generate a short title (3-7 words) that captures the main topic or question.\nRules:\n- Just return the title, nothing else"
  ],
  [
    "follow-ups without a quote",
    "Suggest three follow-up questions for this conversation. Respond only with JSON."
  ],
  ["tags without a quote", "Generate 1-3 tags for the chat history. Return JSON only."],
  [
    "a title of what follows",
    "Generate a short title for the following conversation. Return only the title."
  ],
  [
    "a title by the first message",
    "Create a title for this chat based on the first message. Reply with only the title, no quotes."
  ],
  [
    "a title of the user's message",
    "Write a very short title (max 5 words) summarising the user's message. Do not use quotes."
  ]
]

/** Requests as the clients' repositories have them: the client, where it stands there, and its beginning. */
const publishedTexts = readFileSync(
  join(import.meta.dirname, "../../../testing/client-prompts.jsonl"),
  "utf8"
)
  .trim()
  .split("\n")
  .map((line) => {
    const { client, text }: { readonly client: string; readonly text: string } = JSON.parse(line)
    return [client, text] as const
  })

/** What people say to an agent. */
const ownTexts = [
  "Write a summary with a title",
  "Based on this conversation, create a Title object. Return only its id.",
  "Based on our conversation, write a title for the report. No quotes.",
  "You are a title generator for our blog. Give each Post a title. Return only the titles.",
  "Summarize the contract in a title of at most 6 words. Return only the title.",
  "Only the title of this conversation's contract, please: which is it?",
  "Summarize this conversation in a note with a title, without any quotes",
  "Write a summary of our conversation with a title and save it as a note. Do not use quotes.",
  "Give this conversation a title and put it on the board, no punctuation.",
  "Write a title and a summary of this conversation in at most 50 words into the ticket",
  "Summarize in a 10-word title what the contract says, and store it with the contract",
  "Summarize the conversation with Ada into a note, without punctuation.",
  "Generate a concise title (max 40 characters) for the blog post.",
  "Given the following, please reply with a plan and create its tasks: we move in May.",
  "Find a title for the conversation between Ada and Grace and add it to the meeting. Only return the title.",
  "Available tools: what can you use? Choose and use the correct one.",
  "Based on our conversation, create the tasks that we agreed on. Only return their names.",
  "The following text breaks off: please complete it and save it.",
  "将这次对话总结为一条笔记，并给它一个标题",
  "### Task:\nRespond to the user query using the provided context.\n<context>\nAda\n</context>\n<user_query>\nCreate a note\n</user_query>",
  "Summarize the contract in 200 words",
  "Generate a title for the blog post object",
  "Give this project a name",
  "Write a short title for the blog post. Only return the title, no quotes.",
  "Generate a title for the blog post from our conversation. No punctuation, please.",
  "Summarize the conversation with the customer and add the title to the ticket",
  "Generate a title for the conversation object conv-12, without any punctuation.",
  "Summarize our conversation in 200 words",
  "Summarize the discussion paper, to use as a prompt for the panel.",
  "Suggest three follow-up questions for the interview with Ada, nothing else.",
  "Suggest a fitting emoji for the release notes, only return the emoji.",
  "Add tags to every contract that names a licence. Do not use more than three.",
  "You have been provided with a set of responses from various suppliers: compare them.",
  "Which tools did you use in this conversation? Only return their names.",
  "Analyze this contract and provide: 1. The language 2. A concise title, no quotes",
  'Create a Prompt object with the text "Generate a title for the conversation. Output only the title."',
  "### Task: rename the objects\nGive each a title without any quotes.",
  "Give the conversation room in the floor plan a name, no quotes.",
  "Summarize the conversation in the meeting object as tags, nothing else.",
  "Name the three risks in this discussion paper. Only return the names.",
  "Give the customer in this conversation a name in the graph, no quotes.",
  "Create an object of type Chat with the title Conversation. Do not add tags.",
  "Write the name of the contract into the message and don't add anything.",
  "Make a list of the topics of this conversation and create a Topic object for each. Do not add tags.",
  "Create a Topic object for this conversation, without any tags.",
  "Please name the supplier of the chat software; only give the name.",
  "Suggest a title for the talk in our discussion of yesterday, no quotes.",
  "Generate a JSON object with the name of the user's message type",
  "Provide the title of the message Ada sent, only give the title.",
  "Create a tag for the messages of Ada in the chat. Do not use red."
]

describe("A request that a chat client makes for itself", () => {
  const says = (content: string) => wantedOf({ messages: [user(content)] })

  it.each([...helperTexts, ...publishedTexts])(
    "%s is recognised, as the user's message and as the system's",
    (_, content) => {
      expect(says(content)).toMatchObject({ isHelper: true, isToolless: true })
      const system = [{ role: "system", content }, user("user: Hello")]
      expect(wantedOf({ messages: system })).toMatchObject({ isHelper: true, isToolless: true })
    }
  )

  it.each(ownTexts)("%s: is a person's own", (content) => {
    expect(says(content)).toMatchObject({ isHelper: false, isToolless: false })
    const system = [{ role: "system", content }, user("Hello")]
    expect(wantedOf({ messages: system })).toMatchObject({ isHelper: false, isToolless: false })
  })

  it("is what is said where it ends the conversation as a system message", () => {
    const wanted = wantedOf({
      messages: [
        user("One"),
        { role: "assistant", content: "Two" },
        { role: "system", content: nextChatMemory }
      ]
    })
    expect(wanted).toMatchObject({ isHelper: true, said: { role: "user", content: nextChatMemory } })
    expect(wanted.history.map(({ content }) => content)).toEqual(["One", "Two"])
  })

  it("is none where the instructions stand before a conversation that goes on", () => {
    const messages = [
      { role: "system", content: lobeChat },
      user("One"),
      { role: "assistant", content: "Two" },
      user("Three")
    ]
    expect(wantedOf({ messages })).toMatchObject({ isHelper: false })
  })
})
