/**
 * Ids and names that the server has told, by the list that they belong to.
 */
import type { Chance } from "../packages/server/simulation/chance.ts"
import type { Operation } from "../packages/server/testing/documented.ts"
import type { Json } from "../packages/server/testing/platform.ts"
import type { Furnished } from "./furnishing.ts"
import type { Answer } from "./target.ts"

/** Of one list, the last ones. */
const keptOfOneList = 40

/** In which list the thing lies that a field names, where the field's name does not say so. */
const lists: Readonly<Record<string, string>> = {
  fromId: "objects",
  toId: "objects",
  entryId: "processing-log",
  eventId: "events",
  rootEventId: "events",
  parentRunId: "runs",
  assignee: "members",
  userId: "members",
  digest: "attachments",
  model: "agents",
  idempotencyKey: "objects"
}

/** What an address may hold that names nothing. */
const wrong: readonly [string, ...Array<string>] = [
  "00000000-0000-7000-8000-000000000000",
  "7",
  "%00",
  "a%2Fb",
  "%ff",
  "null",
  "x".repeat(3_000),
  "-1",
  "💥"
]

export class KnownIds {
  readonly #known = new Map<string, Array<string>>()
  readonly #projectId: string

  constructor({ agentId, objectId, otherId, projectId }: Furnished) {
    this.#projectId = projectId
    this.#known.set("objects", [objectId, otherId])
    this.#known.set("agents", [agentId])
    this.#known.set("contexts", ["listener"])
  }

  /** A known id for a field such as `agentId`. */
  one(field: string, chance: Chance): string | undefined {
    const list =
      lists[field] ??
      (field.endsWith("Id")
        ? `${field.slice(0, -2).replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}s`
        : "")
    const known = this.#known.get(list)
    return known === undefined || known.length === 0 ? undefined : known[chance.below(known.length)]
  }

  /** An address with known ids in place of its parameters. */
  fill(path: string, chance: Chance, wildness: number): string {
    return path.replace(/([^/]+)\/\{(\w+)\}/g, (_, list: string, name: string) => {
      if (name === "projectId" && !(wildness === 1 && chance.oneIn(10))) return `${list}/${this.#projectId}`
      const known = this.#known.get(list) ?? []
      const found = known[chance.below(known.length)]
      const isNumber = name === "version" || name === "number"
      const id = isNumber ? String(chance.between(0, 3)) : (found ?? wrong[0])
      return `${list}/${wildness > 0 && chance.oneIn(12) ? chance.pick(wrong) : encodeURIComponent(id)}`
    })
  }

  /** Keeps what an answer tells of. */
  learn({ path }: Operation, { body, status }: Answer): void {
    if (status >= 300 || body === null || typeof body !== "object") return
    const list =
      path
        .split("/")
        .filter((step) => !step.startsWith("{"))
        .at(-1) ?? ""
    for (const item of (Array.isArray(body.items) ? body.items : [body]) as ReadonlyArray<Json>) {
      const id =
        list === "contexts"
          ? item?.name
          : list === "members"
            ? item?.userId
            : list === "attachments"
              ? item?.digest
              : item?.id
      if (typeof id !== "string") continue
      const known = this.#known.get(list) ?? []
      this.#known.set(list, [...known.filter((each) => each !== id), id].slice(-keptOfOneList))
    }
  }
}
