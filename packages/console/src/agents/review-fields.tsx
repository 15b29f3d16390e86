/**
 * How an agent's suggestions wait for people: how many, for how long, and for whom.
 */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { membersQuery } from "../server/settings-queries.ts"
import type { DraftFields } from "./draft-fields.ts"

export const ReviewFields = ({ draft, change, at }: DraftFields): ReactNode => {
  const { project } = useConsole()
  const { data: members } = useQuery(membersQuery(project.id))
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <TextField
        label="Default reviewer"
        hint="Anyone with the reviewer's role can still decide"
        {...at("/reviewPolicy/assignee")}
        value={draft.assignee}
        onChange={(assignee) => change({ assignee })}
        offered={members?.items.map(({ userId }) => userId) ?? []}
      />
      <TextField
        label="Max pending suggestions"
        hint="Default: 1000; further suggestions are refused"
        {...at("/reviewPolicy/maxPending")}
        value={draft.maxPending}
        onChange={(maxPending) => change({ maxPending })}
      />
      <TextField
        label="Suggestions expire after (ms)"
        hint="Leave empty for never. 86400000 is one day."
        {...at("/reviewPolicy/expiresAfterMs")}
        value={draft.expiresAfterMs}
        onChange={(expiresAfterMs) => change({ expiresAfterMs })}
      />
    </div>
  )
}
