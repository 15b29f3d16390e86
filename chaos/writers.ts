/**
 * People who write through all servers, and ask again under the same key until they are answered.
 */
import type { Json } from "../bench/doors.ts"
import { chanceOf } from "./plan.ts"
import { answer, type Send, types, voyage } from "./project.ts"
import { type MortalServer, token } from "./servers.ts"

export interface Written {
  readonly id: string
  readonly version: number
  readonly type: string
  readonly key: string
  readonly n: number
}

/** What somebody said in a conversation, and was answered. */
export interface Said {
  readonly conversationId: string
  readonly message: string
}

/** Who lives in the project. */
export interface Place {
  readonly path: string
  readonly hostId: string
  /** How long what takes long takes. */
  readonly voyageMs: number
}

/** So many voyages are under way at a time: each server works on some of them when it stands still. */
const voyagesAtOnce = 9

/** How long one request waits before it is sent anew, to another server. */
const answerTimeoutMs = 5_000
const pauseMs = 200
/** After so long without a yes or a no something is wrong that is no fault of the plan. */
const patienceMs = 180_000

/** Sends to one server after another under one key until somebody says yes or no; tells of each that did neither what it did. */
export const senderOf = (servers: ReadonlyArray<MortalServer>, tellOf?: (what: string) => void): Send => {
  let next = 0
  return async (method, path, body, key = crypto.randomUUID()) => {
    const from = performance.now()
    let last = "nothing"
    while (performance.now() - from < patienceMs) {
      const server = servers[next++ % servers.length]
      const askedMs = performance.now()
      try {
        const response = await fetch(`${server?.url}${path}`, {
          method,
          signal: AbortSignal.timeout(answerTimeoutMs),
          headers: {
            authorization: `Bearer ${token}`,
            "content-type": "application/json",
            "idempotency-key": key
          },
          ...(method === "GET" ? {} : { body: JSON.stringify(body) })
        })
        const text = await response.text()
        if (response.ok) return text === "" ? null : JSON.parse(text)
        last = `${response.status}: ${text}`
        if (response.status < 500 && response.status !== 429 && response.status !== 409)
          throw new Refused(`${method} ${path} answered ${last}`)
      } catch (error) {
        if (error instanceof Refused) throw error
        last = error instanceof Error ? error.name : String(error)
      }
      tellOf?.(`${server?.url} after ${Math.round(performance.now() - askedMs)} ms: ${last}`)
      await Bun.sleep(pauseMs)
    }
    throw new Refused(`${method} ${path} has no answer after ${patienceMs / 1_000} s; the last was ${last}`)
  }
}

/** Somebody said no: to ask again would change nothing. */
export class Refused extends Error {}

export interface People {
  readonly written: ReadonlyArray<Written>
  /** What was answered otherwise when it was asked again under its key. */
  readonly twofold: ReadonlyArray<string>
  readonly decided: ReadonlyArray<{ readonly id: string; readonly verdict: string }>
  readonly said: ReadonlyArray<Said>
  /** Writes an object; `via` knows which servers are at work, as a load balancer would. */
  readonly create: (type: string, via?: Send) => Promise<Written>
  /** Lets everybody finish what they are at. */
  readonly rest: () => Promise<void>
}

/** Lets people write and decide until they are told to rest. */
export const startPeople = (send: Send, { hostId, path, voyageMs }: Place, seed: number): People => {
  const chance = chanceOf(seed)
  const written: Array<Written> = []
  const twofold: Array<string> = []
  const decided: Array<{ readonly id: string; readonly verdict: string }> = []
  const said: Array<Said> = []
  const state = { isOver: false }
  let last = 0
  const create = async (type: string, via = send): Promise<Written> => {
    const n = ++last
    const key = `${seed}-${n}`
    const made: Json = await via("POST", `${path}/objects`, { type, properties: { n } }, key)
    const one = { id: made.id, version: made.version, type, key, n }
    written.push(one)
    return one
  }
  /** Now and then asks for the same under the same key, as who did not hear the answer does. */
  const createInDoubt = async (type: string): Promise<void> => {
    const { id, key, n, version } = await create(type)
    if (chance() >= 0.3) return
    const again: Json = await send("POST", `${path}/objects`, { type, properties: { n } }, key)
    if (again.id !== id || again.version !== version)
      twofold.push(`${key} was answered ${id} and then ${again.id}`)
  }
  const write = async (): Promise<void> => {
    while (!state.isOver) {
      await createInDoubt(types[Math.floor(chance() * types.length)] ?? "Order")
      await Bun.sleep(pauseMs)
    }
  }
  const sail = async (): Promise<void> => {
    while (!state.isOver) {
      await createInDoubt(voyage)
      await Bun.sleep(voyageMs / voyagesAtOnce)
    }
  }
  const decide = async (): Promise<void> => {
    while (!state.isOver) {
      const { items } = await send("GET", `${path}/tasks?status=pending&limit=20`, null)
      for (const { id } of items) {
        const verdict = chance() < 0.5 ? "approve" : "reject"
        await send("POST", `${path}/tasks/${id}/${verdict}`, {})
        decided.push({ id, verdict })
      }
      await Bun.sleep(pauseMs * 5)
    }
  }
  const say = async (message: string, to: Json): Promise<string> => {
    const body = { message, ...to }
    const key = crypto.randomUUID()
    let told: Json = await send("POST", `${path}/chat`, body, key)
    while (told.status === "working") told = await send("POST", `${path}/chat`, body, key)
    said.push({ conversationId: told.conversationId, message })
    // A turn whose workers died too often has failed, and says so.
    if (told.status === "completed" && told.response !== answer)
      twofold.push(`"${message}" was answered ${JSON.stringify(told)}`)
    return told.conversationId
  }
  const talk = async (): Promise<void> => {
    for (let n = 1; !state.isOver; n += 1) {
      const conversationId = await say(`hello ${n}`, { agentId: hostId })
      await say(`more ${n}`, { conversationId })
      await Bun.sleep(pauseMs)
    }
  }
  const all = Promise.all([write(), write(), sail(), decide(), talk()])
  all.catch(() => undefined)
  return {
    written,
    twofold,
    decided,
    said,
    create,
    rest: async () => {
      state.isOver = true
      await all
    }
  }
}
