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
        label="Who is asked to decide"
        hint="Anybody else with the role may, too"
        {...at("/reviewPolicy/assignee")}
        value={draft.assignee}
        onChange={(assignee) => change({ assignee })}
        offered={members?.items.map(({ userId }) => userId) ?? []}
      />
      <TextField
        label="Suggestions that wait, at most"
        hint="1000 by itself; one more is refused"
        {...at("/reviewPolicy/maxPending")}
        value={draft.maxPending}
        onChange={(maxPending) => change({ maxPending })}
      />
      <TextField
        label="They expire after, in ms"
        hint="Empty is never; 86400000 is a day"
        {...at("/reviewPolicy/expiresAfterMs")}
        value={draft.expiresAfterMs}
        onChange={(expiresAfterMs) => change({ expiresAfterMs })}
      />
    </div>
  )
}
