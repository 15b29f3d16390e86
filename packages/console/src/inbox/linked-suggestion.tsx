/**
 * A linked task that waits no more: what was decided or answered, by whom and when.
 */
import {
  isQuestion,
  isSuggestion,
  type QuestionTask,
  type SuggestionTask,
  type Task
} from "@tropism/domain/task"
import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { LongText } from "../parts/long-text.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { Visible } from "../parts/visible.tsx"
import { failureCode, failureSentence, isMissing } from "../server/problem.ts"
import { taskQuery } from "../server/queries.ts"
import { requestedRows } from "../suggestion/property-diff.ts"
import { PropertyRows } from "./property-rows.tsx"
import { QuestionMark } from "./question-card.tsx"
import { KindMark } from "./suggestion-card.tsx"

interface LinkedSuggestionProps {
  readonly projectId: string
  readonly taskId: string
}

export const LinkedSuggestion = ({ projectId, taskId }: LinkedSuggestionProps): ReactNode => {
  const { data: task, error } = useQuery(taskQuery(projectId, taskId))
  if (!task && !error) return null
  return (
    <section
      aria-label="Linked task"
      data-state={task ? task.status : failureCode(error)}
      className="enter mb-10 rounded-2xl border border-line bg-sunken p-5"
    >
      {task ? (
        <Linked task={task} />
      ) : (
        <p className="text-sm text-ink-soft">
          {isMissing(error) ? "This task does not exist in this project." : failureSentence(error)}
        </p>
      )}
      <p className="mt-3 text-xs">
        <Link to="/" className="rounded font-medium text-leaf underline-offset-2 hover:underline">
          Close
        </Link>
      </p>
    </section>
  )
}

const Linked = ({ task }: { readonly task: Task }): ReactNode => {
  if (isQuestion(task)) return <Answered task={task} />
  if (isSuggestion(task)) return <Decided task={task} />
  return (
    <p className="font-semibold">
      <Visible text={task.title} />
    </p>
  )
}

const statusWords = {
  pending: "is pending",
  completed: "was approved",
  rejected: "was rejected",
  expired: "expired"
} as const

/** Its rows are shown as what was asked for: the object has moved on since. */
const Decided = ({ task }: { readonly task: SuggestionTask }): ReactNode => {
  const rows = requestedRows(task.payload.suggestedChanges)
  return (
    <Ended
      task={task}
      mark={<KindMark task={task} />}
      heading={<Visible text={task.title} />}
      begun="suggested"
      ended={statusWords[task.status]}
      words={task.resolutionNote}
    >
      {rows.length > 0 && <PropertyRows rows={rows} task={task} seen={undefined} />}
    </Ended>
  )
}

const answerWords = {
  pending: "is pending",
  completed: "was answered",
  rejected: "was rejected",
  expired: "no longer needs an answer"
} as const

const Answered = ({ task }: { readonly task: QuestionTask }): ReactNode => (
  <Ended
    task={task}
    mark={<QuestionMark />}
    heading={<LongText text={task.payload.question} />}
    begun="asked"
    ended={answerWords[task.status]}
    words={task.payload.answer ?? null}
  />
)

interface EndedProps {
  readonly task: SuggestionTask | QuestionTask
  readonly mark: ReactNode
  readonly heading: ReactNode
  /** What the agent did, and what became of it. */
  readonly begun: "suggested" | "asked"
  readonly ended: string
  /** What the person said who ended it. */
  readonly words: string | null
  readonly children?: ReactNode
}

/** Who began a task and who ended it, and in which words. */
const Ended = ({ begun, children, ended, heading, mark, task, words }: EndedProps): ReactNode => (
  <div className="flex items-start gap-3.5">
    {mark}
    <div className="grid min-w-0 grow gap-3">
      <div>
        <h2 className="font-semibold whitespace-pre-line">{heading}</h2>
        <p className="mt-0.5 text-sm text-ink-soft">
          #{task.number}, {begun} by <Visible text={task.agentName} />, {ended}
          {task.resolvedBy !== null && (
            <>
              {" "}
              by <Visible text={task.resolvedBy} />
            </>
          )}
          {task.resolvedAt !== null && (
            <>
              {" "}
              <TimeAgo instant={task.resolvedAt} />
            </>
          )}
          .
        </p>
      </div>
      {words !== null && (
        <blockquote className="border-l-2 border-line-strong pl-3.5 text-sm whitespace-pre-line text-ink-soft">
          <LongText text={words} />
        </blockquote>
      )}
      {children}
    </div>
  </div>
)
