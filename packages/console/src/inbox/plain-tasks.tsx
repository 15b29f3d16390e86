/**
 * Tasks that are told in a line and settled with a click: one's own todos, and what is decided whole.
 */
import { isTodo, type Task } from "@tropism/domain/task"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useId } from "react"
import { Button } from "../parts/button.tsx"
import { LongText } from "../parts/long-text.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { useSettling } from "./use-settling.ts"

interface PlainTasksProps {
  readonly projectId: string
  readonly title: string
  /** What is said of them beside the title. */
  readonly words: string
  readonly tasks: ReadonlyArray<Task>
  /** Whether the reader may settle them. */
  readonly canSettle: boolean
}

export const PlainTasks = ({ projectId, title, words, tasks, canSettle }: PlainTasksProps): ReactNode => {
  const headingId = useId()
  if (tasks.length === 0) return null
  return (
    <section aria-labelledby={headingId} className="mb-10 min-w-0">
      <header className="mb-3 px-1">
        <h2 id={headingId} className="text-base">
          <span className="font-semibold">{title}</span> <span className="text-ink-soft">{words}</span>
          <span className="ml-2.5 rounded-full bg-line/60 px-2 py-0.5 text-xs text-ink-soft">
            {tasks.length}
          </span>
        </h2>
      </header>
      <ol className="grid grid-cols-1 gap-3">
        {tasks
          .toSorted((a, b) => a.number - b.number)
          .map((task) => (
            <li key={task.id} className="enter min-w-0">
              <PlainTask projectId={projectId} task={task} canSettle={canSettle} />
            </li>
          ))}
      </ol>
    </section>
  )
}

type PlainTaskProps = Pick<PlainTasksProps, "projectId" | "canSettle"> & { readonly task: Task }

const PlainTask = ({ projectId, task, canSettle }: PlainTaskProps): ReactNode => {
  const { settle, isSending } = useSettling(projectId, task)
  const titleId = useId()
  return (
    <article
      aria-labelledby={titleId}
      aria-busy={isSending}
      className="flex flex-wrap items-start gap-3.5 rounded-2xl border border-line bg-surface p-4 shadow-card sm:p-5"
    >
      <div className="min-w-0 grow basis-60">
        <h3 id={titleId} className="font-semibold text-pretty">
          <LongText text={task.title} />
        </h3>
        {task.description !== null && (
          <p className="mt-0.5 text-sm text-ink-soft">
            <LongText text={task.description} />
          </p>
        )}
        <p className="mt-1 flex items-center gap-x-2.5 text-xs text-ink-faint">
          <Link
            to="/tasks/$taskId"
            params={{ taskId: task.id }}
            search={(search) => search}
            className="rounded hover:text-ink hover:underline"
            aria-label={`Link to ${isTodo(task) ? "todo" : "task"} ${task.number}`}
          >
            {isTodo(task) ? "t" : "#"}
            {task.number}
          </Link>
          <TimeAgo instant={task.createdAt} />
        </p>
      </div>
      {canSettle && (
        <p className="flex gap-2">
          {isTodo(task) ? (
            <Button disabled={isSending} onClick={() => settle("complete")}>
              Complete
            </Button>
          ) : (
            <>
              <Button weight="primary" disabled={isSending} onClick={() => settle("approve")}>
                Approve
              </Button>
              <Button disabled={isSending} onClick={() => settle("reject")}>
                Reject
              </Button>
            </>
          )}
        </p>
      )}
    </article>
  )
}
