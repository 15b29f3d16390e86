/**
 * The files of a JSON parsing test suite, as a value of a property, as a whole body and as a line of an import.
 *
 * `y_` is kept and reads back as a JSON reader reads it, but for U+0000, which
 * nothing keeps; `n_` is refused; `i_` may be either, and what is kept reads back equal.
 */
import { readdir, readFile } from "node:fs/promises"
import { isDeepStrictEqual } from "node:util"
import { join } from "node:path"
import type { Json } from "../packages/server/testing/platform.ts"
import { furnished } from "./furnishing.ts"
import { inTurns } from "./hands.ts"
import type { Target } from "./target.ts"

export const sendJsonFiles = async (target: Target, folder: string, untilMs: number): Promise<void> => {
  const { findings, send } = target
  const suite = join(folder, "json-test-suite")
  const names = (await readdir(suite)).filter((name) => name.endsWith(".json"))
  const { agentId, path } = await furnished(target, "JSON files")
  const done = await inTurns(names, untilMs, async (name) => {
    const bytes = new Uint8Array(await readFile(join(suite, name)))
    findings.count(`JSON files ${name[0]}_`)
    const ways = [
      {
        at: `${path}/objects`,
        before: `{"type":"Thing","properties":{"a":`,
        after: "}}",
        told: (body: Json) => body.properties.a
      },
      {
        at: `${path}/agents/${agentId}/trigger`,
        before: `{"input":{"a":`,
        after: "}}",
        told: (body: Json) => body.trigger.input.a
      }
    ]
    for (const { after, at, before, told } of ways) {
      const request = { method: "POST", path: at, body: joined(before, bytes, after), repeat: name }
      const { body, status } = await send(request)
      const wanted = wantedOf(name, bytes, at.endsWith("trigger"))
      if (wanted === "kept" ? status >= 300 : wanted === "refused" && status < 400)
        findings.add(`${name[0]}_ files`, `${name} answered ${status}: ${JSON.stringify(body)}`, at)
      if (status >= 300) continue
      const read = JSON.parse(new TextDecoder().decode(bytes))
      const kept = [told(body)]
      if (at.endsWith("objects"))
        kept.push(told((await send({ method: "GET", path: `${at}/${body.id}` })).body))
      for (const value of kept)
        if (!isDeepStrictEqual(plain(value), plain(read)))
          findings.add(
            "a JSON file reads back otherwise",
            `${name}: ${JSON.stringify(value)} is not ${JSON.stringify(read)}`,
            at
          )
    }
    for (const at of [`${path}/objects`, `${path}/mcp`, `${path}/v1/chat/completions`])
      await send({
        method: "POST",
        path: at,
        body: bytes,
        repeat: name,
        headers: { accept: "application/json, text/event-stream" }
      })
    await send({
      method: "POST",
      path: `${path}/import?format=jsonl`,
      headers: { "content-type": "application/octet-stream" },
      body: joined(`{"type":"Thing","properties":{"a":`, bytes, "}}\n"),
      repeat: name
    })
  })
  if (done < names.length) console.log(`files: cut short after ${done} of ${names.length}`)
}

/** What must come of a file. A contract's own field may not stand twice: who sent it meant one of the two. */
const wantedOf = (name: string, bytes: Uint8Array, isContract: boolean): "kept" | "refused" | "either" => {
  if (name.startsWith("n_")) return "refused"
  if (name.startsWith("i_")) return "either"
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes))
  if (JSON.stringify(value).replaceAll("\\\\", "").includes("\\u0000")) return "refused"
  return isContract && name.includes("duplicated_key") ? "either" : "kept"
}

/** −0 is 0 here. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const joined = (before: string, bytes: Uint8Array, after: string): Uint8Array =>
  new Uint8Array([...new TextEncoder().encode(before), ...bytes, ...new TextEncoder().encode(after)])
