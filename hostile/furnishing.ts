/**
 * A project with something of each kind in it, to be wrong about.
 */
import type { Json } from "../packages/server/testing/platform.ts"
import type { Target } from "./target.ts"

export interface Furnished {
  readonly path: string
  readonly projectId: string
  readonly objectId: string
  readonly otherId: string
  /** An agent that says one sentence to everybody. */
  readonly agentId: string
}

export const furnished = async ({ send }: Target, name: string): Promise<Furnished> => {
  const make = async (path: string, body: Json): Promise<Json> => {
    const answer = await send({ method: "POST", path, body })
    if (answer.status >= 300)
      throw new Error(`POST ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const { id: projectId } = await make("/api/projects", { name })
  const path = `/api/projects/${projectId}`
  const object = await make(`${path}/objects`, { type: "Thing", key: "a", properties: { a: 1 } })
  const other = await make(`${path}/objects`, { type: "Thing", key: "b" })
  const agent = await make(`${path}/agents`, {
    name: "listener",
    prompt: "Listen.",
    triggerType: "manual",
    model: { provider: "scripted", name: "hostile", script: { rules: [{ say: "Heard." }] } }
  })
  await make(`${path}/contexts`, { name: "listener", agentId: agent.id })
  return { path, projectId, objectId: object.id, otherId: other.id, agentId: agent.id }
}
