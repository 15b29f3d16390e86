/**
 * People who send files to an agent while servers come and go, each in a context of its own or of the project.
 *
 * There are few files, so two people send the same one at once, and one of them may vouch for what the other doubts.
 */
import { createHash } from "node:crypto"
import type { Agent } from "@tropism/domain/agent"
import type { Digest } from "@tropism/domain/attachment"
import { ContextName } from "@tropism/domain/context-event"
import type { UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Attachments, type KeptFile } from "../src/contexts/attachments.ts"
import { Contexts } from "../src/contexts/contexts.ts"
import { Triggers } from "../src/reactions/manual-triggers.ts"
import type { Person } from "./people.ts"

const fileOf = (text: string, untrusted: boolean): KeptFile => {
  const bytes = new TextEncoder().encode(text)
  const digest = createHash("sha256").update(bytes).digest("hex") as Digest
  return { digest, bytes, mimeType: "text/plain", sizeBytes: bytes.length, untrusted }
}

/** Sends a few files and shows them to the agent; `isOwn` is whether nobody else may read the context. */
export const sendFiles = Effect.fnUntraced(function* (
  agent: Agent,
  name: string,
  isOwn: boolean,
  { acknowledged, ask, chance }: Person
) {
  const by = name as UserId
  const made = yield* ask(
    Effect.flatMap(Contexts, (contexts) =>
      contexts.create(ContextName.make(`files-${name}`), agent.id, undefined, isOwn ? by : null)
    )
  )
  if (made.type !== "done") return
  for (let n = chance.between(2, 4); n > 0; n--) {
    const file = fileOf(`What ${chance.pick(["ants", "bees", "wasps"])} do.`, chance.oneIn(3))
    const kept = yield* ask(Effect.flatMap(Attachments, (attachments) => attachments.keep(file, by)))
    acknowledged.filed.push({ digest: file.digest, by, isSure: kept.type === "done" })
    if (chance.oneIn(2)) yield* Effect.sleep(chance.between(1, 300))
    const told = yield* ask(
      Effect.gen(function* () {
        const known = yield* (yield* Attachments).find(file.digest)
        if (known === undefined) return undefined
        const event = {
          type: "FileAttachmentEvent" as const,
          source: { type: "upload" as const },
          digest: known.digest,
          mimeType: known.mimeType,
          sizeBytes: known.sizeBytes,
          fileName: null,
          triggersAgentTurn: chance.oneIn(2),
          ...(known.untrusted ? { untrusted: true } : {})
        }
        yield* (yield* Triggers).byEvent(made.value, event, by)
        return known.digest
      })
    )
    if (told.type === "done" && told.value !== undefined)
      acknowledged.shown.push({ context: made.value.name, digest: told.value })
    if (chance.oneIn(2)) yield* Effect.sleep(chance.between(1, 500))
  }
})
