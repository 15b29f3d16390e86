/**
 * Says for whom a suggestion or a question waits, and until when a suggestion does.
 *
 * Only what is changed is sent: what somebody else set meanwhile stays. Whoever
 * may decide still may; it is a request, no lock.
 */
import { isSuggestion, type QuestionTask, type SuggestionTask } from "@tropism/domain/task"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { ChoiceField } from "../parts/form-fields.tsx"
import { readClock } from "../parts/read-clock.ts"
import { membersQuery } from "../server/settings-queries.ts"
import { useWrite } from "../server/use-write.ts"
import { visibleText } from "../words/visible-text.ts"

interface AssignDialogProps {
  readonly task: SuggestionTask | QuestionTask
  readonly onClose: () => void
}

export const AssignDialog = ({ task, onClose }: AssignDialogProps): ReactNode => {
  const [atFirst] = useState(task.assignee)
  const people = usePeople([atFirst, task.assignee])
  const [assignee, setAssignee] = useState(atFirst ?? nobody)
  const [until, setUntil] = useState(asItIs)
  const write = useWrite(`Assign #${task.number}`, onClose)
  const assign = () => {
    const body = {
      ...(assignee !== (atFirst ?? nobody) && { assignee: assignee === nobody ? null : assignee }),
      ...(until !== asItIs && { expiresAt: instantOf(until) })
    }
    if (Object.keys(body).length === 0) onClose()
    else write.run({ path: `tasks/${encodeURIComponent(task.id)}`, method: "PATCH", body })
  }
  return (
    <FormDialog
      title={`Assign #${task.number}`}
      verb="Assign"
      isBusy={write.isBusy}
      error={write.error}
      pointers={["/assignee", "/expiresAt"]}
      onSubmit={assign}
      onClose={onClose}
    >
      <ChoiceField
        label="Assignee"
        hint="Visible to everyone. Other reviewers can still decide."
        pointer="/assignee"
        error={write.error}
        value={assignee}
        choices={people}
        onChange={setAssignee}
      />
      {isSuggestion(task) && (
        <ChoiceField
          label="Due"
          hint="If it is not reviewed by then, it expires without a change."
          pointer="/expiresAt"
          error={write.error}
          value={until}
          choices={untilChoices(task.expiresAt)}
          onChange={setUntil}
        />
      )}
    </FormDialog>
  )
}

/** No user is called so: the name of one has at least a letter. */
const nobody = ""

/** Oneself first, then the members who may do something; these assignees are among them. */
const usePeople = (assignees: ReadonlyArray<string | null>) => {
  const { project, principal } = useConsole()
  const { data } = useQuery(membersQuery(project.id))
  const members = (data?.items ?? []).filter(({ role }) => role !== "viewer").map(({ userId }) => userId)
  const others = new Set<string>([...members, ...assignees.filter((each) => each !== null)])
  others.delete(principal.userId)
  return [
    { value: nobody, label: "Anyone who can review" },
    { value: principal.userId, label: "yourself" },
    ...[...others].toSorted().map((value) => ({ value, label: visibleText(value) }))
  ]
}

const asItIs = "asItIs"
const withoutEnd = "withoutEnd"
const dayMs = 86_400_000

/** Choices by how many days they are from now. */
const daysFromNow = [
  { value: "1", label: "1 day from now" },
  { value: "3", label: "3 days from now" },
  { value: "7", label: "1 week from now" },
  { value: "28", label: "4 weeks from now" }
]

const untilChoices = (expiresAt: string | null) => [
  { value: asItIs, label: expiresAt === null ? "unchanged: no due date" : "unchanged" },
  ...daysFromNow,
  ...(expiresAt === null ? [] : [{ value: withoutEnd, label: "no due date" }])
]

const instantOf = (until: string): string | null =>
  until === withoutEnd ? null : new Date(readClock() + Number(until) * dayMs).toISOString()
