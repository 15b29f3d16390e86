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
  for (const projectId of projectIds ?? [])
    yield* ask(
      story.access,
      `insert into kb.members (project_id, user_id, role) select id, $2, $3 from kb.projects where id = $1 on conflict (project_id, user_id) do update set role = excluded.role`,
      [projectId, userId, role]
    )
  return withToken(story, token)
})

/** The same project through the doors of as many users as are asked for, each an editor. */
export const asEditors = Effect.fnUntraced(function* (story: Story, count: number) {
  const name = crypto.randomUUID()
  yield* ask(
    story.access,
    `insert into kb.api_tokens (id, hash, user_id, role)
     select gen_random_uuid(), encode(sha256(convert_to($1 || each, 'UTF8')), 'hex'), 'editor-' || each, 'editor'
     from generate_series(1, $2) each`,
    [name, count]
  )
  return Array.from({ length: count }, (_, index) => withToken(story, `${name}${index + 1}`))
})

const withToken = (story: Story, token: string): Story => {
  const send: Story["send"] = (method, path, body, headers = {}) =>
    story.send(method, path, body, { authorization: `Bearer ${token}`, ...headers })
  return storyIn({ ...story, token, send }, story.access, story.projectId)
}
