/**
 * What contexts cost: an event more, a context that nobody speaks in, and a thousand who watch one.
 *
 * The messages ask for no answer, so what is measured is the log and not an agent.
 */
import { atRate, type Json, newProject, nowMs, patienceMs, type Send, until, withHands } from "./doors.ts"
import { gatherCrowd, gatherStalled } from "./fan-out.ts"
import { quantile } from "./figures.ts"
import type { AttemptContext } from "./measures.ts"

interface Place {
  readonly projectId: string
  readonly agentId: string
  /** Of the project. */
  readonly path: string
}

const newPlace = async (send: Send): Promise<Place> => {
  const { id, path } = await newProject(send)
  const agent = await send("POST", `${path}/agents`, {
    name: "listens",
    prompt: "Listen.",
    triggerType: "manual",
    tools: [],
    model: { provider: "scripted", name: "bench", script: { rules: [{ say: "Yes." }] } }
  })
  return { projectId: id, agentId: agent.id, path }
}

const newContext = async (send: Send, { agentId, path }: Place, name: string): Promise<string> => {
  await send("POST", `${path}/contexts`, { name, agentId })
  return `${path}/contexts/${name}`
}

const say = (send: Send, context: string, content: string) =>
  send("POST", `${context}/events`, { type: "UserMessageEvent", content, triggersAgentTurn: false })

/** Messages kept per second: one writer, sixteen in one log, sixteen in a log each. */
const measureAppends = async (
  { floor, report, send, server, size }: AttemptContext,
  place: Place
): Promise<void> => {
  const names = Array.from({ length: 16 }, (_, index) => `writer-${index}`)
  const contexts = await Promise.all(names.map((name) => newContext(send, place, name)))
  const loads = [
    { load: "1 writer", hands: 1, logs: contexts.slice(0, 1) },
    { load: "16 writers, one log", hands: 16, logs: contexts.slice(0, 1) },
    { load: "16 writers, a log each", hands: 16, logs: contexts }
  ]
  for (const { hands, load, logs } of loads) {
    const before = await server.cpuMs()
    const { durations, elapsedMs } = await withHands(
      hands,
      { ms: size.writesMs, times: Number.MAX_SAFE_INTEGER },
      async (index) => void (await say(send, logs[index % logs.length] ?? "", `Message ${index}`))
    )
    report({
      name: "appends",
      load,
      value: (durations.length * 1_000) / elapsedMs,
      unit: "/s",
      beside: {
        name: "plain commits",
        value: hands === 1 ? 1_000 / floor.commitMs : floor.commitsPerSecond16
      }
    })
    const after = await server.cpuMs()
    const each = (ms: number) => ({ load, value: ms / durations.length, unit: "ms" as const })
    report({ name: "append: server's processor time", ...each(after.server - before.server) })
    report({ name: "append: PostgreSQL's processor time", ...each(after.postgres - before.postgres) })
    report({ name: "append, p50", load, value: quantile(durations, 0.5), unit: "ms" })
    report({ name: "append, p99", load, value: quantile(durations, 0.99), unit: "ms" })
  }
}

/** Contexts with three messages each, as they would lie there; the first of them are read through HTTP once, as people do. */
const makeIdle = async ({ rows, send, size }: AttemptContext, place: Place, count: number): Promise<void> => {
  const { agentId, path, projectId } = place
  const name = `'idle-${count}-' || number`
  await rows.alone([
    `insert into kb.contexts (project_id, name, agent_id, last_event_number)
     select '${projectId}', ${name}, '${agentId}', 3 from generate_series(1, ${count}) number`,
    `insert into kb.context_events (project_id, context_name, number, type, payload, triggers_agent_turn, created_at)
     select '${projectId}', ${name}, event, 'UserMessageEvent', '{"content": "Hello."}', false, now()
     from generate_series(1, ${count}) number, generate_series(1, 3) event`
  ])
  const read = Math.min(count, size.readContexts)
  await withHands(8, { ms: patienceMs, times: read }, async (index) => {
    await send("GET", `${path}/contexts/idle-${count}-${index + 1}/state`)
  })
}

const measureIdleContexts = async (bench: AttemptContext, place: Place): Promise<void> => {
  const { report, send, server, size } = bench
  const perContext = async (count: number, load: string, make: () => Promise<void>) => {
    const before = await server.heapBytes()
    await make()
    const grown = Math.max(0, (await server.heapBytes()) - before)
    report({ name: "heap of an idle context", load, value: grown / 1_024 / count, unit: "KiB" })
  }
  const spoken = size.spokenContexts
  const speak = async (name: string) => {
    await withHands(8, { ms: patienceMs, times: spoken }, async (index) => {
      const context = await newContext(send, place, `${name}-${index}`)
      await send("POST", `${context}/events`, { type: "UserMessageEvent", content: "Are you there?" })
    })
    await until(
      () => send("GET", `${place.path}/runs?status=queued,running&limit=1`),
      ({ items }) => items.length === 0,
      "Not everybody was answered"
    )
  }
  // What a server keeps of the first requests of a kind, compiled programs above all, is not what a context costs.
  await speak("first")
  await makeIdle(bench, place, 10)
  await perContext(spoken, `${spoken.toLocaleString("en")} that were answered`, () => speak("spoken"))
  for (const count of size.idleContexts)
    await perContext(count, `${count.toLocaleString("en")} that lie there`, () =>
      makeIdle(bench, place, count)
    )
}

/** Events at a steady rate, and as fast as sixteen can write, to all who watch one log. */
const measureFanOut = async ({ report, send, server, size }: AttemptContext, place: Place): Promise<void> => {
  const { stalled, subscribers } = size
  const context = await newContext(send, place, "watched")
  const path = `${context}/events`
  const gatheredMs = nowMs()
  const crowd = await gatherCrowd(server, path, subscribers)
  const gathering = nowMs() - gatheredMs
  const crowdSize = `${subscribers.toLocaleString("en")} subscribers`
  report({
    name: "fan-out: streams begun",
    load: crowdSize,
    value: (subscribers * 1_000) / gathering,
    unit: "/s"
  })
  // The first message comes after the session's start, which is event 1.
  let written = 1
  const toAll = async (
    load: string,
    count: number,
    write: (act: () => Promise<void>) => Promise<unknown>
  ) => {
    const sentMs: Array<number> = []
    const first = written + 1
    const cpu = await server.cpuMs()
    const start = nowMs()
    await write(async () => {
      const index = sentMs.push(nowMs()) - 1
      await say(send, context, String(index))
    })
    written += count
    await until(
      () => Promise.resolve(crowd.heardBy(written)),
      (heard) => heard === subscribers,
      `Not everybody heard event ${written}`
    )
    const deliveries = count * subscribers
    const elapsedMs = crowd.lastHeardMs(written) - start
    const after = await server.cpuMs()
    // Writers that write at once are not kept in the order in which they began.
    const { items } = await send("GET", `${path}?after=${first - 1}&limit=${count}`)
    const latencies = items.map(
      ({ content }: Json, index: number) =>
        crowd.lastHeardMs(first + index) - (sentMs[Number(content)] ?? Number.NaN)
    )
    report({ name: "fan-out: deliveries", load, value: (deliveries * 1_000) / elapsedMs, unit: "/s" })
    report({
      name: "fan-out: append → last subscriber, p50",
      load,
      value: quantile(latencies, 0.5),
      unit: "ms"
    })
    report({
      name: "fan-out: append → last subscriber, p99",
      load,
      value: quantile(latencies, 0.99),
      unit: "ms"
    })
    report({
      name: "fan-out: server's processor time for 1,000 deliveries",
      load,
      value: ((after.server - cpu.server) * 1_000) / deliveries,
      unit: "ms"
    })
    report({
      name: "fan-out: PostgreSQL's processor time for an event",
      load,
      value: (after.postgres - cpu.postgres) / count,
      unit: "ms"
    })
  }
  const steady = 20 * size.steadySeconds
  const atTwenty = (act: () => Promise<void>) => atRate(20, steady, act)
  await toAll(`${crowdSize}, 20 events/s`, steady, atTwenty)
  const part = gatherStalled(server, path, stalled)
  await toAll(`${crowdSize} and ${stalled} that never read, 20 events/s`, steady, atTwenty)
  await toAll(`${crowdSize}, ${size.burst / 10} events at once`, size.burst / 10, (act) =>
    withHands(16, { ms: patienceMs, times: size.burst / 10 }, act)
  )
  part()
  crowd.leave()
}

export const measureContexts = async (bench: AttemptContext): Promise<void> => {
  const place = await newPlace(bench.send)
  await measureAppends(bench, place)
  await measureIdleContexts(bench, place)
  await measureFanOut(bench, place)
}
