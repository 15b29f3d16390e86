/**
 * Many who watch one feed for long: everybody hears every event, once and in order.
 *
 * `gatherCrowd` ends the trial when an event comes that is not the next one.
 */
import { atRate, newProject, nowMs, type Send, until } from "../bench/doors.ts"
import { gatherCrowd } from "../bench/fan-out.ts"
import { quantile } from "../bench/figures.ts"
import { atMost, count, exactly, type Finding, flatness, told, type Trial } from "./trial.ts"
import { watch } from "./watch.ts"

/** From a write to the last of all who hear of it. */
const lateMs = 1_000

export const tellSubscribers = async ({
  rows,
  send,
  server,
  size
}: Trial): Promise<ReadonlyArray<Finding>> => {
  const { path } = await newProject(send)
  const times = Math.round((size.toldPerSecond * size.subscribedMs) / 1_000)
  const crowd = await gatherCrowd(server, `${path}/events`, size.subscribers)
  const sentOf = new Map<string, number>()
  const write = async (index: number) => {
    const begun = nowMs()
    const { id } = await send("POST", `${path}/objects`, { type: "Note", properties: { index } })
    sentOf.set(id, begun)
  }
  const warmUp = Math.ceil(times / 50)
  await atRate(size.toldPerSecond, warmUp, write)
  const before = await server.heapBytes()
  const stop = watch(server, rows, size.lookEveryMs)
  await atRate(size.toldPerSecond, times - warmUp, (index) => write(warmUp + index))
  await until(
    () => Promise.resolve(crowd.heardBy(times)),
    (heard) => heard === size.subscribers,
    `Not everybody heard event ${times}`
  )
  const looks = await stop()
  const after = await server.heapBytes()
  // Two writes at once get their places in the order in which they are committed.
  const order = await placesOf(send, path)
  const lags = order.map((id, place) => crowd.lastHeardMs(place + 1) - (sentOf.get(id) ?? Number.NaN))
  const heard = order.reduce((sum, _id, place) => sum + crowd.heardBy(place + 1), 0)
  crowd.leave()
  return [
    exactly(`events heard, by ${count(size.subscribers)} subscribers`, heard, times * size.subscribers),
    told("write → the last has heard it, p50", quantile(lags.slice(warmUp), 0.5), "ms"),
    atMost("write → the last has heard it, p99", quantile(lags.slice(warmUp), 0.99), lateMs, "ms"),
    ...flatness(looks, { before, after })
  ]
}

/** The objects of a feed, by the place of their event. */
const placesOf = async (send: Send, path: string): Promise<ReadonlyArray<string>> => {
  const ids: Array<string> = []
  let query = "limit=200"
  for (;;) {
    const { items, nextCursor } = await send("GET", `${path}/events?${query}`)
    for (const { entityId, position } of items) ids[position - 1] = entityId
    if (nextCursor === null) return ids
    query = `limit=200&cursor=${encodeURIComponent(nextCursor)}`
  }
}
