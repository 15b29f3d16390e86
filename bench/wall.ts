/**
 * What the database's own wall costs a write: the same writes with it and without it, in turns.
 *
 * Neighbours and warm caches come and go; rounds that alternate have both alike.
 */
import type { Rows } from "./database.ts"
import { newProject, withHands } from "./doors.ts"
import { quantile } from "./figures.ts"
import type { AttemptContext } from "./measures.ts"

const walled = [
  "graph_objects",
  "graph_object_versions",
  "graph_relationships",
  "graph_relationship_versions",
  "graph_events"
]

const setWall = (rows: Rows, isUp: boolean): Promise<void> =>
  rows.alone(walled.map((table) => `alter table kb.${table} ${isUp ? "enable" : "disable"} trigger user`))

const rounds = 24

/** Creates and updates of objects with nobody who reacts: how long one takes, and what of it is PostgreSQL's. */
export const measureWall = async ({ server, send, rows, report, size }: AttemptContext): Promise<void> => {
  const { path } = await newProject(send)
  const samples = { up: sample(), down: sample() }
  for (let round = 0; round < rounds; round++) {
    const isUp = round % 2 === 0
    await setWall(rows, isUp)
    const { id } = await send("POST", `${path}/objects`, { type: "Plain", properties: {} })
    const before = await server.cpuMs()
    const { durations } = await withHands(
      1,
      { ms: (size.writesMs / rounds) * 4, times: Number.MAX_SAFE_INTEGER },
      async (number) => {
        const body = { properties: { number, text: "What a row says, in a few words." } }
        await (number % 2 === 0
          ? send("PATCH", `${path}/objects/${id}`, body)
          : send("POST", `${path}/objects`, { type: "Plain", ...body }))
      }
    )
    const after = await server.cpuMs()
    const { durations: all, postgres } = isUp ? samples.up : samples.down
    all.push(...durations)
    postgres.push((after.postgres - before.postgres) / durations.length)
  }
  await setWall(rows, true)
  for (const [name, of] of [
    ["graph write, p50", (one: Sample) => quantile(one.durations, 0.5)],
    ["graph write: PostgreSQL's processor time", (one: Sample) => quantile(one.postgres, 0.5)]
  ] as const)
    report({
      name,
      load: "1 client, second wall",
      value: of(samples.up),
      unit: "ms",
      beside: { name: "without", value: of(samples.down) }
    })
}

interface Sample {
  readonly durations: Array<number>
  readonly postgres: Array<number>
}

const sample = (): Sample => ({ durations: [], postgres: [] })
