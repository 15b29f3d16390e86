/**
 * A stream of events, read until what was heard is enough.
 */
import type { Json } from "../packages/server/testing/platform.ts"
import type { Target } from "./target.ts"

/** How long a stream may take to tell what is there already. */
const streamTimeoutMs = 60_000

/** Reads a stream from its beginning; what was heard when the time was up is answered, too. */
export const heardOf = async (
  { findings, server }: Target,
  path: string,
  isEnough: (heard: ReadonlyArray<Json>) => boolean
): Promise<ReadonlyArray<Json>> => {
  const heard: Array<Json> = []
  const closing = new AbortController()
  const response = await fetch(server.url + path, {
    signal: AbortSignal.any([closing.signal, AbortSignal.timeout(streamTimeoutMs)]),
    headers: { authorization: `Bearer ${server.token}`, accept: "text/event-stream" }
  })
  const decoder = new TextDecoder()
  let rest = ""
  try {
    for await (const bytes of response.body ?? []) {
      const blocks = (rest + decoder.decode(bytes, { stream: true })).split("\n\n")
      rest = blocks.pop() ?? ""
      for (const block of blocks) {
        const text = block
          .split("\n")
          .filter((line) => line.startsWith("data: "))
          .map((line) => line.slice(6))
          .join("\n")
        if (text !== "") heard.push(JSON.parse(text))
      }
      if (isEnough(heard)) break
    }
  } catch (error) {
    findings.add("a stream", `${String(error)} after ${heard.length} events`, `GET ${path}`)
  }
  closing.abort()
  return heard
}
