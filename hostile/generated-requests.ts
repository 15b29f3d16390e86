/**
 * Requests drawn from the OpenAPI document: good ones, nearly good ones and wild ones, of every operation.
 *
 * The n-th request of a seed is drawn from a stream of its own. Ids that answers
 * told are used again, so that what comes later finds something; they depend on
 * what the server made and differ from run to run, so a finding is told with the
 * request as it was sent.
 */
import { type Chance, chanceOf } from "../packages/server/simulation/chance.ts"
import type { Operation } from "../packages/server/testing/documented.ts"
import type { Json } from "../packages/server/testing/platform.ts"
import { furnished } from "./furnishing.ts"
import { inTurns } from "./hands.ts"
import { KnownIds } from "./known-ids.ts"
import { type Maker, valueFor } from "./made-values.ts"
import type { Answer, Request, Target } from "./target.ts"

/** After so many requests the kill switches are opened again: a stopped server refuses what comes after. */
const reopenEvery = 250

/** How wild a request is, as often as it stands here. */
const wildnesses: readonly [number, ...Array<number>] = [0, 0, 0.1, 0.3, 1]

export const sendGenerated = async (
  target: Target,
  seed: string,
  count: number,
  untilMs: number
): Promise<void> => {
  const { documented, findings, send } = target
  const room = await furnished(target, "Generated")
  const ids = new KnownIds(room)
  const operations = documented.operations.filter(
    ({ path }) => path !== "/api/projects/{projectId}/mcp-servers/{mcpServerId}/refresh"
  )
  // What is kept has more turns than the rest: each is read back.
  const keeping = operations.filter(({ method, path }) => method === "POST" && isGraph.test(path))
  const turns = [...operations, ...Array.from({ length: 5 }, () => keeping).flat()]
  const answered = new Map<Operation, Set<number>>()
  const done = await inTurns(Array.from({ length: count }), untilMs, async (_, index) => {
    const chance = chanceOf(`${seed}/${index}`)
    // Each operation has its turn, so that few requests reach all of them.
    const operation = turns[index % turns.length]
    if (operation === undefined) return
    const request = requestOf(operation, chance, documented.document.components.schemas, ids)
    const answer = await send({ ...request, repeat: `--seed ${seed}, request ${index}:` })
    ids.learn(operation, answer)
    answered.set(operation, (answered.get(operation) ?? new Set()).add(Math.floor(answer.status / 100)))
    await checkKept(target, operation, request, answer)
    if (index % reopenEvery === 0)
      for (const path of ["/api/kill-switch", `${room.path}/kill-switch`])
        await send({ method: "PUT", path, body: { stopped: false } })
  })
  const good = [...answered].filter(([, kinds]) => kinds.has(2)).length
  findings.count("operations", operations.length)
  findings.count("operations that said yes", good)
  const never = [...answered]
    .filter(([, kinds]) => !kinds.has(2))
    .map(([{ method, path }]) => `${method} ${path}`)
  if (done < count) console.log(`generated: cut short after ${done} of ${count}`)
  console.log(`never answered 2xx: ${never.join(", ")}`)
}

/** The lists of the graph. */
const isGraph = /\/(?:objects|relationships)$/

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] as const

const requestOf = (
  operation: Operation,
  chance: Chance,
  schemas: Record<string, Json>,
  ids: KnownIds
): Request => {
  const wildness = chance.pick(wildnesses)
  const maker: Maker = { chance, wildness, schemas, idFor: (field) => ids.one(field, chance) }
  const path = ids.fill(operation.path, chance, wildness)
  const query = new URLSearchParams()
  const headers: Record<string, string> = {}
  for (const { in: where, name, schema } of operation.parameters) {
    if (where === "path" || !chance.oneIn(3)) continue
    const value =
      name === "limit" || name === "depth"
        ? chance.pick(["1", "3", "200", "0", "-1", "x", "1e9"])
        : valueFor(maker, schema, name)
    const text = typeof value === "string" ? value : JSON.stringify(value)
    if (where === "query") query.append(name, text.toWellFormed())
    else headers[name] = text.replace(/[^\t\x20-\x7e]/g, "")
  }
  if (chance.oneIn(10) && operation.method === "GET") headers["accept"] = "text/event-stream"
  const method = wildness > 0 && chance.oneIn(40) ? chance.pick(methods) : operation.method
  const [contentType, schema] = operation.bodies[chance.below(operation.bodies.length)] ?? []
  const hasBody = contentType !== undefined && !["GET", "HEAD"].includes(method)
  const text = query.size === 0 ? "" : `?${query}`
  return {
    method,
    path: path + text,
    headers: hasBody && contentType !== undefined ? { ...headers, "content-type": contentType } : headers,
    ...(hasBody ? { body: bodyOf(maker, contentType ?? "", schema) } : {})
  }
}

const bodyOf = (maker: Maker, contentType: string, schema: Json): string => {
  const { chance, wildness } = maker
  const text =
    JSON.stringify(
      contentType === "application/json" || schema?.type === "object" ? valueFor(maker, schema) : {}
    ) ?? ""
  // A wild body is sometimes cut or has a byte changed.
  if (wildness === 1 && chance.oneIn(6)) return text.slice(0, chance.below(text.length + 1))
  if (wildness > 0 && chance.oneIn(20))
    return text.replace(/\d/, chance.pick(["1e400", "9007199254740993", "-", "01", "NaN"]))
  return text
}

/** What an object or a relationship was given stands in it afterwards. */
const checkKept = async (
  { findings, send }: Target,
  operation: Operation,
  request: Request,
  answer: Answer
) => {
  if (answer.status !== 201 || operation.method !== "POST" || request.method !== "POST") return
  if (!isGraph.test(operation.path) || typeof request.body !== "string") return
  const sent = JSON.parse(request.body).properties ?? {}
  const read = await send({ method: "GET", path: `${request.path.replace(/\?.*$/s, "")}/${answer.body.id}` })
  for (const { body, status } of [answer, read])
    if (
      status < 300 &&
      !Bun.deepEquals(JSON.parse(JSON.stringify(body.properties)), JSON.parse(JSON.stringify(sent)))
    )
      findings.add(
        "an acknowledged value reads back otherwise",
        JSON.stringify(body.properties),
        JSON.stringify(sent)
      )
  findings.count("values read back")
}
