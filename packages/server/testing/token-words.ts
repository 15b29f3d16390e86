/**
 * The words in which stories open doors as somebody else than the server's admin.
 */
import { Effect } from "effect"
import { ask } from "./owner-rows.ts"
import { type Story, storyIn } from "./platform.ts"

/** The same project through the doors of a user with a role, whose token reaches every project unless some are named; users of a role are one unless they are named. */
export const asUser = Effect.fnUntraced(function* (
  story: Story,
  role: "viewer" | "editor" | "reviewer" | "admin",
  projectIds: ReadonlyArray<string> | null = null,
  userId: string = role
) {
  const token = `a-token-of-${crypto.randomUUID()}`
  yield* ask(
    story.access,
    `insert into kb.api_tokens (id, hash, user_id, role, project_ids)
     values (gen_random_uuid(), encode(sha256($1::bytea), 'hex'), $2, $3, $4::uuid[])`,
    [token, userId, role, projectIds]
  )
  const send: Story["send"] = (method, path, body, headers = {}) =>
    story.send(method, path, body, { authorization: `Bearer ${token}`, ...headers })
  return storyIn({ ...story, token, send }, story.access, story.projectId)
})
