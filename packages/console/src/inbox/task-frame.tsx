/**
 * What stands around a task that is no suggestion: its mark, its title, its number and its age.
 */
import type { Task } from "@tropism/domain/task"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useContext, useId } from "react"
import { CautionIcon } from "../parts/icons.tsx"
import { LongText } from "../parts/long-text.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { LinkedTask, useLinkedCard } from "./linked-card.ts"

interface TaskFrameProps {
  readonly task: Task
  readonly mark: ReactNode
  readonly isBusy: boolean
  /** Where the link stands before the number: `undo`. */
  readonly kind: string
  readonly refusal?: string | undefined
  readonly children: ReactNode
}

export const TaskFrame = ({ task, mark, isBusy, kind, refusal, children }: TaskFrameProps): ReactNode => {
  const titleId = useId()
  const { attributes, frame } = useLinkedCard(task.id)
  const isLinked = useContext(LinkedTask) === task.id
  return (
    <article
      {...attributes}
      data-kind={kind}
      aria-labelledby={titleId}
      aria-busy={isBusy}
      className={`rounded-2xl border bg-surface p-4 shadow-card transition-opacity duration-150 sm:p-5 ${frame} ${
        isBusy ? "opacity-60" : ""
      }`}
    >
      <header className="flex flex-wrap items-start gap-x-3.5 gap-y-2">
        {mark}
        <h3 id={titleId} className="min-w-0 grow basis-40 font-semibold text-pretty">
          <LongText text={task.title} />
        </h3>
        <p className="flex h-7 shrink-0 items-center gap-x-2.5 text-xs text-ink-faint">
          <Link
            to="/tasks/$taskId"
            params={{ taskId: task.id }}
            // Of its own address it keeps what the address chooses in it.
            search={(search) => (isLinked ? search : {})}
            className="rounded text-center hover:text-ink hover:underline pointer-coarse:min-w-6"
            aria-label={`Link to ${kind} #${task.number}`}
          >
            #{task.number}
          </Link>
          <TimeAgo instant={task.createdAt} />
        </p>
      </header>
      <div className="mt-2 grid grid-cols-1 gap-3.5">{children}</div>
      {refusal !== undefined && (
        <p role="status" className="mt-3 flex items-start gap-2 text-xs font-medium text-caution-ink">
          <CautionIcon className="mt-0.5" />
          <span>{refusal}</span>
        </p>
      )}
    </article>
  )
}

/** A heading with what is said of the tasks and how many there are. */
export const TaskSection = ({
  title,
  words,
  count,
  children
}: {
  readonly title: string
  readonly words: string
  readonly count: number
  readonly children: ReactNode
}): ReactNode => {
  const headingId = useId()
  if (count === 0) return null
  return (
    <section aria-labelledby={headingId} className="mb-10 min-w-0">
      <header className="mb-3 px-1">
        <h2 id={headingId} className="text-base">
          <span className="font-semibold">{title}</span> <span className="text-ink-soft">{words}</span>
          <span className="ml-2.5 rounded-full bg-line/60 px-2 py-0.5 text-xs text-ink-soft">{count}</span>
        </h2>
      </header>
      <ol className="grid grid-cols-1 gap-3">{children}</ol>
    </section>
  )
}
