/**
 * The tools of the MCP servers that stories use: real servers, made with the official SDK.
 *
 * Each call that reaches a server is written down before it is answered, so a
 * story counts what truly happened. What a server says of its tools can be
 * changed while it runs.
 */
import { existsSync, readFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { type CallToolResult, Server, type Tool } from "@modelcontextprotocol/server"

/** What surrounds a server. */
export interface Surroundings {
  /** Writes a call down. */
  readonly note: (call: { readonly tool: string; readonly arguments: unknown }) => void
  /** A file with `{tool: {description?, …}}`, laid over what the tools say of themselves; `null` leaves one out. */
  readonly overlay: string | undefined
  /** A call with `wait: true` is answered once this file exists. */
  readonly gate: string | undefined
  /** What `tell_secret` tells. */
  readonly secret: string
}

const schema = (
  properties: Record<string, Record<string, string | number>>,
  required: ReadonlyArray<string> = []
): Tool["inputSchema"] => ({ type: "object", properties, required: [...required] })

const text = { type: "string" }
const wait = { type: "boolean" }

export const storyTools: ReadonlyArray<Tool> = [
  {
    name: "lookup",
    description: "Looks a word up.",
    inputSchema: schema({ word: text }, ["word"]),
    annotations: { readOnlyHint: true }
  },
  {
    name: "charge",
    description: "Charges an amount.",
    inputSchema: schema({ amount: { type: "integer", minimum: 1 }, wait }, ["amount"])
  },
  {
    name: "put",
    description: "Sets a key to a value.",
    inputSchema: schema({ key: text, value: text, wait }, ["key"]),
    annotations: { idempotentHint: true }
  },
  { name: "tell_secret", description: "Tells what it was given.", inputSchema: schema({}) },
  { name: "big", description: "Says a lot.", inputSchema: schema({ length: { type: "integer" } }) },
  { name: "table", description: "Answers a structure.", inputSchema: schema({}) },
  { name: "fail", description: "Fails.", inputSchema: schema({}) },
  { name: "die", description: "Ends the server.", inputSchema: schema({}) },
  { name: "odd.name/x", description: "Has an odd name.", inputSchema: schema({}) }
]

/** Makes one server; SDK entries ask for one for each connection or request. */
export const makeStoryServer = (surroundings: Surroundings): Server => {
  const server = new Server({ name: "story", version: "1" }, { capabilities: { tools: {} } })
  server.setRequestHandler("tools/list", () => Promise.resolve({ tools: listed(surroundings) }))
  server.setRequestHandler("tools/call", ({ params }) => {
    const args = (params.arguments ?? {}) as Record<string, unknown>
    surroundings.note({ tool: params.name, arguments: args })
    return opened(surroundings, args["wait"] === true).then(() => answer(surroundings, params.name, args))
  })
  return server
}

const listed = ({ overlay }: Surroundings): Array<Tool> => {
  const over: Record<string, Partial<Tool> | null> =
    overlay !== undefined && existsSync(overlay) ? JSON.parse(readFileSync(overlay, "utf8")) : {}
  const known = storyTools.flatMap((tool) => {
    const said = over[tool.name]
    return said === null ? [] : [{ ...tool, ...said }]
  })
  const added = Object.entries(over).flatMap(([name, said]) =>
    said !== null && !storyTools.some((tool) => tool.name === name)
      ? [{ name, inputSchema: schema({}), ...said }]
      : []
  )
  return [...known, ...added]
}

const opened = (surroundings: Surroundings, waits: boolean): Promise<void> =>
  !waits || surroundings.gate === undefined || existsSync(surroundings.gate)
    ? Promise.resolve()
    : sleep(10).then(() => opened(surroundings, waits))

const answer = ({ secret }: Surroundings, tool: string, args: Record<string, unknown>): CallToolResult => {
  const say = (words: string): CallToolResult => ({ content: [{ type: "text", text: words }] })
  switch (tool) {
    case "lookup":
      return say(`${String(args["word"])} is a word.`)
    case "charge":
      return say(`Charged ${String(args["amount"])}.`)
    case "put":
      return say(`Put ${String(args["key"])}.`)
    case "tell_secret":
      return say(`I was given ${secret}.`)
    case "big":
      return say("x".repeat(Number(args["length"] ?? 0)))
    case "table":
      return { content: [{ type: "text", text: "A table." }], structuredContent: { rows: [1, 2] } }
    case "fail":
      return { ...say("It broke."), isError: true }
    case "die":
      process.kill(process.pid, "SIGKILL")
      return say("")
    default:
      return say(`${tool} was called.`)
  }
}
